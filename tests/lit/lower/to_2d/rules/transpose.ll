; Transposes: no copy if only tensor operations use the result, otherwise loops around 2-D copies.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; x * x^T reads %a twice: once row-major, once column-major.
; CHECK-LABEL: define void @view(ptr %a, ptr noalias %c) {
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %matmul = call <9 x float> @llvm.tensor.matmul.v9f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v9f32.v2i32(<9 x float> %matmul, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %product, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @view(ptr %a, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <12 x float> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %y = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <9 x float> @llvm.tensor.matmul(token %x, token %y)
  store <9 x float> %m, ptr %c
  ret void
}

; The proposal's example: 16x5x3 with padding <3, 2, 1> becomes 3x16x5 with padding <1, 3, 2>.
; CHECK-LABEL: define void @padded(ptr %a, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 960, i1 false)
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 15
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 5
; CHECK-NEXT:    %from = getelementptr inbounds float, ptr %a, i64 %i.offset
; CHECK-NEXT:    %to = getelementptr inbounds float, ptr %c, i64 %i.offset.1
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %from, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %transpose = call <6 x float> @llvm.tensor.transpose.v6f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float> %transpose, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %columns, <2 x i32> <i32 0, i32 80>)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t = icmp slt i64 %i.next, 13
; CHECK-NEXT:    br i1 %t, label %i.loop, label %i.end
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @padded(ptr %a, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 16, i32 5, i32 3>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 3, i32 2, i32 1>, <3 x i32> zeroinitializer)
  %v = call <240 x float> @llvm.tensor.transpose(token %x, <3 x i32> <i32 2, i32 0, i32 1>)
  store <240 x float> %v, ptr %c
  ret void
}

; CHECK-LABEL: define <6 x i16> @value(<6 x i16> %v) {
; CHECK-NEXT:    %v.buf = alloca [6 x i16], align 64
; CHECK-NEXT:    %t.buf = alloca [6 x i16], align 64
; CHECK-NEXT:    store <6 x i16> %v, ptr %v.buf, align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %v.buf, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %transpose = call <6 x i16> @llvm.tensor.transpose.v6i16.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v6i16.v2i32(<6 x i16> %transpose, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %t.buf, token %columns, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %t = load <6 x i16>, ptr %t.buf, align 64
; CHECK-NEXT:    ret <6 x i16> %t
; CHECK-NEXT:  }
define <6 x i16> @value(<6 x i16> %v) {
  %x = call token @llvm.tensor.typeinfo(<6 x i16> %v, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %t = call <6 x i16> @llvm.tensor.transpose(token %x)
  ret <6 x i16> %t
}
