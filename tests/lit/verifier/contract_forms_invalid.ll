; Both operands have batch dimensions, or neither.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: contract_forms_invalid.ll:13:3: error: contract: expected operands (a, b, axes_a, axes_b) or (a, b, axes_a, axes_b, batch_a, batch_b) or (a, b), got 5 operands
; CHECK-NEXT: %c = call <30 x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 2>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v, <40 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<40 x float> %w, <3 x i32> <i32 4, i32 2, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <30 x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 2>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  ret void
}
