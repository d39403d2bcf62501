; The result type of matmul follows from its operands.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: matmul_result_invalid.ll:19:3: error: matmul: returns <9 x float> (3x3 float), not <12 x float>
; CHECK-NEXT: %c = call <12 x float> @llvm.tensor.matmul(token %a, token %b)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_result_invalid.ll:15:3: note: lhs is 3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_result_invalid.ll:17:3: note: rhs is 4x3 float
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 4, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v, <12 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 4, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <12 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
