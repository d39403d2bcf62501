; Input and kernel are both integers or both floats.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: convolution_kind_invalid.ll:19:57: error: convolution: x has elements of type i8 and the result of type float: both must be integers or both floats
; CHECK-NEXT: %c = call <96 x float> @llvm.tensor.convolution(token %x, token %w)
; CHECK-NEXT: {{^ {56}\^~$}}
; CHECK-NEXT: convolution_kind_invalid.ll:15:3: note: x is 1x4x6x6 i8
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<144 x i8> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: convolution_kind_invalid.ll:17:3: note: w is 6x2x3x3 float
; CHECK-NEXT: %w = call token @llvm.tensor.typeinfo(<108 x float> %k, <4 x i32> <i32 6, i32 2, i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<144 x i8> %v, <108 x float> %k) {
  %x = call token @llvm.tensor.typeinfo(<144 x i8> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %w = call token @llvm.tensor.typeinfo(<108 x float> %k, <4 x i32> <i32 6, i32 2, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %c = call <96 x float> @llvm.tensor.convolution(token %x, token %w)
  ret void
}
