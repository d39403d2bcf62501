; A kernel slides along both dimensions of a matrix, or along all dimensions after N and C.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<6 x float> %v, <3 x float> %k) {
  %x = call token @llvm.tensor.typeinfo(<6 x float> %v, <3 x i32> <i32 1, i32 1, i32 6>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %w = call token @llvm.tensor.typeinfo(<3 x float> %k, <3 x i32> <i32 1, i32 1, i32 3>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <4 x float> @llvm.tensor.convolution(token %x, token %w)
  ret void
}
