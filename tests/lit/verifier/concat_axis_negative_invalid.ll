; The axis is not negative.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: concat_axis_negative_invalid.ll:19:70: error: concat: axis -1 is not a dimension of x[0], 0 to 1
; CHECK-NEXT: %c = call <20 x float> @llvm.tensor.concat(token %a, token %b, i32 -1)
; CHECK-NEXT: {{^ {69}\^~$}}
; CHECK-NEXT: concat_axis_negative_invalid.ll:15:3: note: x[0] is 3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: concat_axis_negative_invalid.ll:17:3: note: x[1] is 2x4 float
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 2, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v, <8 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 2, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <20 x float> @llvm.tensor.concat(token %a, token %b, i32 -1)
  ret void
}
