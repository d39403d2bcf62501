; RUN: grep -v "^;" %s | tlx-lower - --stop-after=to-2d -o - | FileCheck %s

; Both maps write to the buffer of the pad: the concatenation has no buffer, and only the border is filled.
; CHECK-LABEL: define void @nested(
; CHECK-DAG: %p.buf = alloca [1296 x float]
; CHECK: %part = getelementptr inbounds float, ptr %p.buf, i64 13
; CHECK: %result = getelementptr inbounds float, ptr %part, i64
; CHECK: call void @llvm.tensor.store{{.*}}(ptr %result, token %block, <2 x i32> <i32 0, i32 12>)
; CHECK: %part.1 = getelementptr inbounds float, ptr %p.buf, i64 445
; CHECK: %result.1 = getelementptr inbounds float, ptr %part.1, i64
; CHECK: call void @llvm.tensor.store{{.*}}(ptr %result.1, token %block.1, <2 x i32> <i32 0, i32 12>)
; CHECK: call void @llvm.tensor.store{{.*}}(ptr %p.buf, token %block.2, <2 x i32> <i32 0, i32 144>)
; CHECK-NOT: load.p0{{.*}}<3 x i32> <i32 9, i32 10, i32 10>
; CHECK: call void @llvm.tensor.store{{.*}}(ptr %o
define void @nested(ptr noalias %x, ptr noalias %y, ptr noalias %o) {
  %a = load <300 x float>, ptr %x
  %b = load <600 x float>, ptr %y
  %c = fmul <300 x float> %a, %a
  %d = fadd <600 x float> %b, %b
  %ct = call token @llvm.tensor.typeinfo(<300 x float> %c, <3 x i32> <i32 3, i32 10, i32 10>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %dt = call token @llvm.tensor.typeinfo(<600 x float> %d, <3 x i32> <i32 6, i32 10, i32 10>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %e = call <900 x float> @llvm.tensor.concat(token %ct, token %dt, i32 0)
  %et = call token @llvm.tensor.typeinfo(<900 x float> %e, <3 x i32> <i32 9, i32 10, i32 10>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %p = call <1296 x float> @llvm.tensor.pad(token %et, <3 x i32> <i32 0, i32 1, i32 1>, <3 x i32> <i32 0, i32 1, i32 1>, float 0.0)
  %q = fmul <1296 x float> %p, %p
  %pt = call token @llvm.tensor.typeinfo(<1296 x float> %p, <3 x i32> <i32 9, i32 12, i32 12>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %r = call <1296 x float> @llvm.tensor.transpose(token %pt, <3 x i32> <i32 2, i32 0, i32 1>)
  %z = fadd <1296 x float> %q, %r
  store <1296 x float> %z, ptr %o
  ret void
}

; The second map is also reduced, in another shape: the reduction reads it in the buffer of the concatenation.
; CHECK-LABEL: define void @read_twice(
; CHECK-NOT: alloca
; CHECK: %e.buf = alloca [900 x float]
; CHECK-NOT: alloca
; CHECK-NOT: = call token @llvm.tensor.load{{.*}}ptr elementtype(float) %e.buf
; CHECK: %[[PART:part[.0-9]*]] = getelementptr inbounds float, ptr %e.buf, i64 600
; CHECK: call token @llvm.tensor.load{{.*}}ptr elementtype(float) %[[PART]]
; CHECK: call void @llvm.tensor.store{{.*}}(ptr %u
; CHECK: ret void
define void @read_twice(ptr noalias %x, ptr noalias %y, ptr noalias %o, ptr noalias %u) {
  %a = load <600 x float>, ptr %x
  %b = load <300 x float>, ptr %y
  %c = fmul <600 x float> %a, %a
  %d = fadd <300 x float> %b, %b
  %ct = call token @llvm.tensor.typeinfo(<600 x float> %c, <3 x i32> <i32 6, i32 10, i32 10>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %dt = call token @llvm.tensor.typeinfo(<300 x float> %d, <3 x i32> <i32 3, i32 10, i32 10>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %e = call <900 x float> @llvm.tensor.concat(token %ct, token %dt, i32 0)
  %et = call token @llvm.tensor.typeinfo(<900 x float> %e, <3 x i32> <i32 9, i32 10, i32 10>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %r = call <900 x float> @llvm.tensor.transpose(token %et, <3 x i32> <i32 2, i32 0, i32 1>)
  %z = fadd <900 x float> %e, %r
  store <900 x float> %z, ptr %o
  %dm = call token @llvm.tensor.typeinfo(<300 x float> %d, <2 x i32> <i32 30, i32 10>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %s = call <10 x float> @llvm.tensor.reduce.add(token %dm, <2 x i32> <i32 30, i32 1>, <2 x i32> <i32 30, i32 1>)
  store <10 x float> %s, ptr %u
  ret void
}
