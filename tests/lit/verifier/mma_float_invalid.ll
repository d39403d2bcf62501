; Only smma takes floating-point matrices.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: mma_float_invalid.ll:24:49: error: umma: acc has elements of type float: use smma for floating-point products
; CHECK-NEXT: %c = call <9 x float> @llvm.tensor.umma(token %acc, token %a, token %b)
; CHECK-NEXT: {{^ {48}\^~~~$}}
; CHECK-NEXT: mma_float_invalid.ll:18:3: note: acc is 3x3 float
; CHECK-NEXT: %acc = call token @llvm.tensor.typeinfo(<9 x float> %u, <2 x i32> <i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: mma_float_invalid.ll:20:3: note: lhs is 3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: mma_float_invalid.ll:22:3: note: rhs is 4x3 float
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 4, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<9 x float> %u, <12 x float> %v, <12 x float> %w) {
  %acc = call token @llvm.tensor.typeinfo(<9 x float> %u, <2 x i32> <i32 3, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 4, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x float> @llvm.tensor.umma(token %acc, token %a, token %b)
  ret void
}
