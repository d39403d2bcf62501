; A new layout is a permutation.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: transpose_layout_invalid.ll:14:69: error: transpose: new_layout <1, 2> is not a permutation of 0 to 1
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 2>)
; CHECK-NEXT: {{^ {68}\^~~~~~~~~~~~~~$}}
; CHECK-NEXT: transpose_layout_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 2>)
  ret void
}
