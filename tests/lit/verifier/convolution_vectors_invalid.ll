; Strides have one entry for each dimension, or for each spatial dimension.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: convolution_vectors_invalid.ll:19:81: error: convolution: strides <1, 2, 2> must have 2 or 4 entries, as x has rank 4
; CHECK-NEXT: %c = call <24 x float> @llvm.tensor.convolution(token %x, token %w, <3 x i32> <i32 1, i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
; CHECK-NEXT: {{^ {80}\^~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: convolution_vectors_invalid.ll:15:3: note: x is 1x4x6x6 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<144 x float> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: convolution_vectors_invalid.ll:17:3: note: w is 6x2x3x3 float
; CHECK-NEXT: %w = call token @llvm.tensor.typeinfo(<108 x float> %k, <4 x i32> <i32 6, i32 2, i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<144 x float> %v, <108 x float> %k) {
  %x = call token @llvm.tensor.typeinfo(<144 x float> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %w = call token @llvm.tensor.typeinfo(<108 x float> %k, <4 x i32> <i32 6, i32 2, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %c = call <24 x float> @llvm.tensor.convolution(token %x, token %w, <3 x i32> <i32 1, i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  ret void
}
