; The element type of a result is one that tensors support.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x i64> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x i64> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x i64> @llvm.tensor.tovector(token %t)
  ret void
}
