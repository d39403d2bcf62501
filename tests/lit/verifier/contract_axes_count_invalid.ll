; Axes of both operands come in pairs.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: contract_axes_count_invalid.ll:19:104: error: contract: axes_a <1, 2> and axes_b <1> must have the same number of entries
; CHECK-NEXT: %c = call <10 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <1 x i32> <i32 1>)
; CHECK-NEXT: {{^ {103}\^~~~~~~$}}
; CHECK-NEXT: contract_axes_count_invalid.ll:15:3: note: a is 2x3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: contract_axes_count_invalid.ll:17:3: note: b is 4x3x5 float
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<60 x float> %w, <3 x i32> <i32 4, i32 3, i32 5>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v, <60 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<60 x float> %w, <3 x i32> <i32 4, i32 3, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <10 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <1 x i32> <i32 1>)
  ret void
}
