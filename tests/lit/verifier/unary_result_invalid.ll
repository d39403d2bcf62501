; The result of a function has the operand's padding.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: unary_result_invalid.ll:14:3: error: relu: returns <12 x float> (3x4 float, padding <0, 1>), not <9 x float>
; CHECK-NEXT: %c = call <9 x float> @llvm.tensor.relu(token %x)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: unary_result_invalid.ll:12:3: note: x is 3x4 float, padding <0, 1>
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>)
  %c = call <9 x float> @llvm.tensor.relu(token %x)
  ret void
}
