; Products with an accumulator: in place where it is the memory the result is stored to, else read where it lies.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @in_place(ptr %c, ptr noalias %a, ptr noalias %b) {
; CHECK-NEXT:    %acc.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %c, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %b, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %usmma = call <15 x i32> @llvm.tensor.usmma.v15i32(token %acc.1, token %lhs, token %rhs)
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v15i32.v2i32(<15 x i32> %usmma, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %sum, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @in_place(ptr %c, ptr noalias %a, ptr noalias %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 8>)
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %s = call <15 x i32> @llvm.tensor.usmma(token %acc, token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<15 x i32> %s, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> <i32 0, i32 8>)
  ret void
}

; A column-major accumulator is copied to where the result goes, an accumulator of zeros is written there.
; CHECK-LABEL: define void @column_major_and_zero(ptr %c, ptr noalias %a, ptr noalias %d, ptr noalias %e) {
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %c, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %transpose = call <12 x float> @llvm.tensor.transpose.v12f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v12f32.v2i32(<12 x float> %transpose, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %d, token %columns, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %acc.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %d, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %smma = call <12 x float> @llvm.tensor.smma.v12f32(token %acc.1, token %lhs, token %rhs)
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v12f32.v2i32(<12 x float> %smma, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %d, token %sum, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 6
; CHECK-NEXT:    %t.1 = getelementptr inbounds float, ptr %e, i64 %i.offset
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %t.1, i8 0, i64 16, i1 false)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t.2 = icmp slt i64 %i.next, 3
; CHECK-NEXT:    br i1 %t.2, label %i.loop, label %i.end
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    %acc.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %e, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %smma.1 = call <12 x float> @llvm.tensor.smma.v12f32(token %acc.2, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v12f32.v2i32(<12 x float> %smma.1, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %e, token %sum.1, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @column_major_and_zero(ptr %c, ptr noalias %a, ptr noalias %d, ptr noalias %e) {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %zero = call token @llvm.tensor.typeinfo(<12 x float> zeroinitializer, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <12 x float> @llvm.tensor.smma(token %acc, token %x, token %y)
  store <12 x float> %r, ptr %d
  %s = call <12 x float> @llvm.tensor.smma(token %zero, token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<12 x float> %s, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %e, token %t, <2 x i32> <i32 0, i32 6>)
  ret void
}
