; Strides of a reduction are positive.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<24 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <6 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
  ret void
}
