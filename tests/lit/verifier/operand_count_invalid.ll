; The number of operands is that of a form of the intrinsic.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: operand_count_invalid.ll:11:3: error: transpose: expected operands (x, new_layout) or (x), got 3 operands
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 1, i32 0>)
  ret void
}
