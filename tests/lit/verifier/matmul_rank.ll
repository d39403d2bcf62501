; Operands of matmul have the same rank, at least 2.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<24 x float> %v, <24 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<24 x float> %w, <3 x i32> <i32 2, i32 4, i32 3>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <18 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
