; Products with an accumulator: updated in place if the result is stored to it, otherwise read from its own memory.
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

; A column-major accumulator is copied to the destination; with one of zeros the product is a matmul.
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
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %matmul = call <12 x float> @llvm.tensor.matmul.v12f32(token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v12f32.v2i32(<12 x float> %matmul, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %e, token %product, <2 x i32> <i32 0, i32 6>)
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
