; All users of a token imply the same element type.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(ptr %p) {
  %t = call token @llvm.tensor.load(ptr %p, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.tovector(token %t)
  %w = call <12 x float> @llvm.tensor.transpose(token %t)
  ret void
}
