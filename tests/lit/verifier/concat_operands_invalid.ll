; At least one tensor is joined.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: concat_operands_invalid.ll:11:3: error: concat: expected operands (x..., axis), got 1 operand
; CHECK-NEXT: %c = call <12 x float> @llvm.tensor.concat(i32 0)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <12 x float> @llvm.tensor.concat(i32 0)
  ret void
}
