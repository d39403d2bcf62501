; Joined tensors have the same element type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: concat_element_invalid.ll:19:62: error: concat: x[1] has elements of type half and the result of type float: they must agree
; CHECK-NEXT: %c = call <20 x float> @llvm.tensor.concat(token %a, token %b, i32 0)
; CHECK-NEXT: {{^ {61}\^~$}}
; CHECK-NEXT: concat_element_invalid.ll:15:3: note: x[0] is 3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: concat_element_invalid.ll:17:3: note: x[1] is 2x4 half
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<8 x half> %w, <2 x i32> <i32 2, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v, <8 x half> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<8 x half> %w, <2 x i32> <i32 2, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <20 x float> @llvm.tensor.concat(token %a, token %b, i32 0)
  ret void
}
