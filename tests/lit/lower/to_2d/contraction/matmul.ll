; A product of matrices: loads, product and store are adjacent and access the user's memory.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @row_major(ptr %a, ptr %b, ptr noalias %c) {
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %matmul = call <15 x float> @llvm.tensor.matmul.v15f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v15f32.v2i32(<15 x float> %matmul, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %product, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @row_major(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 8>)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <15 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<15 x float> %m, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> <i32 0, i32 6>)
  ret void
}

; The left operand is column-major, the right one has a row and two columns of padding: it is a load of 4x5.
; CHECK-LABEL: define void @column_major_and_padded(ptr %a, ptr %b, ptr noalias %c) {
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %a, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %b, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT:    %matmul = call <15 x i32> @llvm.tensor.matmul.v15i32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v15i32.v2i32(<15 x i32> %matmul, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %product, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @column_major_and_padded(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.typeinfo(ptr elementtype(<35 x i8>) %b, <2 x i32> <i32 5, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 2>)
  %m = call <15 x i32> @llvm.tensor.matmul(token %x, token %y)
  store <15 x i32> %m, ptr %c
  ret void
}

; The padding of a result is zero in its buffer; the store of a padded token does not write it.
; CHECK-LABEL: define void @padded_result(ptr %a, ptr noalias %c, ptr noalias %d) {
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 36, i1 false)
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %matmul = call <6 x float> @llvm.tensor.matmul.v6f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float> %matmul, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %product, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %matmul.1 = call <6 x float> @llvm.tensor.matmul.v6f32(token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %product.1 = call token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float> %matmul.1, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %d, token %product.1, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @padded_result(ptr %a, ptr noalias %c, ptr noalias %d) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <9 x float> @llvm.tensor.matmul(token %x, token %y)
  store <9 x float> %m, ptr %c
  %n = call <9 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<9 x float> %n, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>)
  call void @llvm.tensor.store(ptr %d, token %t, <2 x i32> zeroinitializer)
  ret void
}
