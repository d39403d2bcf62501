; Axes are not negative.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: contract_axes_negative_invalid.ll:19:104: error: contract: axes_b <1, -3> must be dimensions of b, 0 to 2
; CHECK-NEXT: %c = call <10 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 -3>)
; CHECK-NEXT: {{^ {103}\^~~~~~~~~~~~~~~$}}
; CHECK-NEXT: contract_axes_negative_invalid.ll:15:3: note: a is 2x3x4 float
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: contract_axes_negative_invalid.ll:17:3: note: b is 4x3x5 float
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<60 x float> %w, <3 x i32> <i32 4, i32 3, i32 5>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v, <60 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<60 x float> %w, <3 x i32> <i32 4, i32 3, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <10 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 -3>)
  ret void
}
