; The number of filters is a multiple of the number of groups.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: convolution_filters_invalid.ll:19:67: error: convolution: w has 5 filters for 2 groups (4 channels of x, 2 of w): 2 does not divide 5
; CHECK-NEXT: %c = call <80 x float> @llvm.tensor.convolution(token %x, token %w)
; CHECK-NEXT: {{^ {66}\^~$}}
; CHECK-NEXT: convolution_filters_invalid.ll:15:3: note: x is 1x4x6x6 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<144 x float> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: convolution_filters_invalid.ll:17:3: note: w is 5x2x3x3 float
; CHECK-NEXT: %w = call token @llvm.tensor.typeinfo(<90 x float> %k, <4 x i32> <i32 5, i32 2, i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<144 x float> %v, <90 x float> %k) {
  %x = call token @llvm.tensor.typeinfo(<144 x float> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %w = call token @llvm.tensor.typeinfo(<90 x float> %k, <4 x i32> <i32 5, i32 2, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %c = call <80 x float> @llvm.tensor.convolution(token %x, token %w)
  ret void
}
