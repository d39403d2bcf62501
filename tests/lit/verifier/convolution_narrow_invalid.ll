; Operands of convolution extend to the result's type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: convolution_narrow_invalid.ll:19:65: error: convolution: w has elements of type i32, which do not extend to the result's type i16
; CHECK-NEXT: %c = call <96 x i16> @llvm.tensor.convolution(token %x, token %w)
; CHECK-NEXT: {{^ {64}\^~$}}
; CHECK-NEXT: convolution_narrow_invalid.ll:15:3: note: x is 1x4x6x6 i8
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<144 x i8> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: convolution_narrow_invalid.ll:17:3: note: w is 6x2x3x3 i32
; CHECK-NEXT: %w = call token @llvm.tensor.typeinfo(<108 x i32> %k, <4 x i32> <i32 6, i32 2, i32 3, i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<144 x i8> %v, <108 x i32> %k) {
  %x = call token @llvm.tensor.typeinfo(<144 x i8> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %w = call token @llvm.tensor.typeinfo(<108 x i32> %k, <4 x i32> <i32 6, i32 2, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %c = call <96 x i16> @llvm.tensor.convolution(token %x, token %w)
  ret void
}
