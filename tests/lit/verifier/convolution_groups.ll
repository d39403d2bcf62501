; The number of input channels is a multiple of the kernel's.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<144 x float> %v, <108 x float> %k) {
  %x = call token @llvm.tensor.typeinfo(<144 x float> %v, <4 x i32> <i32 1, i32 4, i32 6, i32 6>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %w = call token @llvm.tensor.typeinfo(<108 x float> %k, <4 x i32> <i32 6, i32 2, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %c = call <96 x float> @llvm.tensor.convolution(token %x, token %w)
  ret void
}
