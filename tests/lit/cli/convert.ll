; Operations that LLVM has matrix intrinsics for become calls of them; remarks name the others. Converting back gives no remarks.
;
; RUN: tlx convert --to=matrix %s -o %t.ll 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: grep -v "^;" %t.ll | FileCheck %s --implicit-check-not=@llvm.tensor.matmul
; RUN: tlx verify %t.ll 2>&1 | count 0
; RUN: tlx convert -to=tensor %t.ll | grep -v "^;" | FileCheck %s --check-prefix=TENSOR --implicit-check-not=llvm.matrix.
; RUN: tlx convert --to=matrix %S/Inputs/plain.ll | cmp - %S/Inputs/plain.ll
; RUN: tlx convert --to=tensor %S/Inputs/plain.ll | cmp - %S/Inputs/plain.ll
; RUN: not tlx convert %s 2>&1 | FileCheck %s --check-prefix=MISSING
; RUN: not tlx convert --to=loops %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
;
; REMARK: convert.ll:[[#@LINE+17]]:3: remark: exp stays a tensor operation: LLVM has no matrix intrinsic for it
; MISSING: tlx: error: missing option '--to'
; UNKNOWN: tlx: error: invalid value for '--to': 'loops' is not one of 'matrix', 'tensor'
;
; CHECK: %[[A:.*]] = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %a, i64 9, i1 false, i32 3, i32 2)
; CHECK: %[[B:.*]] = call <12 x float> @llvm.matrix.column.major.load.v12f32.i64(ptr %b, i64 4, i1 false, i32 4, i32 3)
; CHECK: %m = call reassoc contract <8 x float> @llvm.matrix.multiply.v8f32.v12f32.v6f32(<12 x float> %[[B]], <6 x float> %[[A]], i32 4, i32 3, i32 2)
; CHECK: %r = call <8 x float> @llvm.tensor.exp.v8f32(token %t)
; CHECK: call void @llvm.matrix.column.major.store.v8f32.i64(<8 x float> %r, ptr %c, i64 5, i1 false, i32 4, i32 2)
; TENSOR: %m = call <8 x float> @llvm.tensor.matmul.v8f32(
; TENSOR: call void @llvm.tensor.store.p0.v2i32(ptr %c, token {{.*}}, <2 x i32> <i32 0, i32 5>)

define void @f(ptr %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr %a, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 9>)
  %y = call token @llvm.tensor.load(ptr %b, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <8 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<8 x float> %m, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <8 x float> @llvm.tensor.exp(token %t)
  %u = call token @llvm.tensor.typeinfo(<8 x float> %r, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> <i32 0, i32 5>)
  ret void
}
