; Operands of matmul have the same rank, at least 2.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: matmul_rank_invalid.ll:19:3: error: matmul: lhs has rank 3 and rhs has rank 2: both must have the same rank of at least 2
; CHECK-NEXT: %c = call <18 x float> @llvm.tensor.matmul(token %a, token %b)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_rank_invalid.ll:15:3: note: lhs is 2x3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_rank_invalid.ll:17:3: note: rhs is 4x3 float
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 4, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v, <12 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 4, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <18 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
