; The shape of a broadcast has positive extents.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<3 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<3 x float> %v, <1 x i32> <i32 3>,
      <1 x i32> <i32 0>, <1 x i32> <i32 0>)
  %c = call <6 x float> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 2, i32 3>, <1 x i32> <i32 1>)
  ret void
}
