; The columns of lhs match the rows of rhs.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: matmul_inner_invalid.ll:19:3: error: matmul: lhs is 3x4 and rhs is 5x3: inner extents 4 and 5 differ
; CHECK-NEXT: %c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_inner_invalid.ll:15:3: note: lhs is 3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_inner_invalid.ll:17:3: note: rhs is 5x3 float
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<15 x float> %w, <2 x i32> <i32 5, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v, <15 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<15 x float> %w, <2 x i32> <i32 5, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
