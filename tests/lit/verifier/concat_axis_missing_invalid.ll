; The axis is required.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: concat_axis_missing_invalid.ll:13:62: error: concat: operand axis must be a constant i32, got token
; CHECK-NEXT: %c = call <20 x float> @llvm.tensor.concat(token %a, token %b)
; CHECK-NEXT: {{^ {61}\^~$}}

define void @f(<12 x float> %v, <8 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 2, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <20 x float> @llvm.tensor.concat(token %a, token %b)
  ret void
}
