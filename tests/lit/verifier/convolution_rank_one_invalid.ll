; A kernel slides along both dimensions of a matrix, or along all dimensions after N and C.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: convolution_rank_one_invalid.ll:19:3: error: convolution: x has rank 1 and w has rank 1: both must have the same rank of at least 2
; CHECK-NEXT: %c = call <4 x float> @llvm.tensor.convolution(token %x, token %w)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: convolution_rank_one_invalid.ll:15:3: note: x is 6 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<6 x float> %v, <1 x i32> <i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: convolution_rank_one_invalid.ll:17:3: note: w is 3 float
; CHECK-NEXT: %w = call token @llvm.tensor.typeinfo(<3 x float> %k, <1 x i32> <i32 3>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<6 x float> %v, <3 x float> %k) {
  %x = call token @llvm.tensor.typeinfo(<6 x float> %v, <1 x i32> <i32 6>,
      <1 x i32> <i32 0>, <1 x i32> <i32 0>)
  %w = call token @llvm.tensor.typeinfo(<3 x float> %k, <1 x i32> <i32 3>,
      <1 x i32> <i32 0>, <1 x i32> <i32 0>)
  %c = call <4 x float> @llvm.tensor.convolution(token %x, token %w)
  ret void
}
