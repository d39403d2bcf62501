; The number of elements of a result fits in 64 bits.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<9 x i8> %v) {
  %x = call token @llvm.tensor.typeinfo(<9 x i8> %v, <2 x i32> <i32 3, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <25 x i8> @llvm.tensor.pad(token %x, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>, i8 0)
  ret void
}
