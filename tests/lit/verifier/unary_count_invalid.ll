; Functions take one tensor.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: unary_count_invalid.ll:11:3: error: sqrt: expected operands (x), got 2 operands
; CHECK-NEXT: %c = call <12 x float> @llvm.tensor.sqrt(token %x, token %x)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <12 x float> @llvm.tensor.sqrt(token %x, token %x)
  ret void
}
