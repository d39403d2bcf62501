; Operands and result of matmul are all integers or all floats.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: matmul_kind_invalid.ll:19:61: error: matmul: rhs has elements of type i32 and the result of type float: both must be integers or both floats
; CHECK-NEXT: %c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)
; CHECK-NEXT: {{^ {60}\^~$}}
; CHECK-NEXT: matmul_kind_invalid.ll:15:3: note: lhs is 3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_kind_invalid.ll:17:3: note: rhs is 4x3 i32
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<12 x i32> %w, <2 x i32> <i32 4, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v, <12 x i32> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<12 x i32> %w, <2 x i32> <i32 4, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
