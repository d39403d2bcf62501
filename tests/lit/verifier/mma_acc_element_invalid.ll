; The result has the accumulator's element type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: mma_acc_element_invalid.ll:24:47: error: smma: acc has elements of type i32 and the result of type i64: they must agree
; CHECK-NEXT: %c = call <9 x i64> @llvm.tensor.smma(token %acc, token %a, token %b)
; CHECK-NEXT: {{^ {46}\^~~~$}}
; CHECK-NEXT: mma_acc_element_invalid.ll:18:3: note: acc is 3x3 i32
; CHECK-NEXT: %acc = call token @llvm.tensor.typeinfo(<9 x i32> %u, <2 x i32> <i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: mma_acc_element_invalid.ll:20:3: note: lhs is 3x4 i8
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x i8> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: mma_acc_element_invalid.ll:22:3: note: rhs is 4x3 i8
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<12 x i8> %w, <2 x i32> <i32 4, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<9 x i32> %u, <12 x i8> %v, <12 x i8> %w) {
  %acc = call token @llvm.tensor.typeinfo(<9 x i32> %u, <2 x i32> <i32 3, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %a = call token @llvm.tensor.typeinfo(<12 x i8> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<12 x i8> %w, <2 x i32> <i32 4, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x i64> @llvm.tensor.smma(token %acc, token %a, token %b)
  ret void
}
