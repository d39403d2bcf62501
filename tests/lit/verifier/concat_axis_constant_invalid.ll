; The axis is a constant.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: concat_axis_constant_invalid.ll:13:70: error: concat: operand axis must be a constant, got %n
; CHECK-NEXT: %c = call <20 x float> @llvm.tensor.concat(token %a, token %b, i32 %n)
; CHECK-NEXT: {{^ {69}\^~$}}

define void @f(<12 x float> %v, <8 x float> %w, i32 %n) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 2, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <20 x float> @llvm.tensor.concat(token %a, token %b, i32 %n)
  ret void
}
