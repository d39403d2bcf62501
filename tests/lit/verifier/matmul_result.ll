; The result type of matmul follows from its operands.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x float> %v, <12 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 4, i32 3>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
