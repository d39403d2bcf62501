; The result of concat has the elements of all operands.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x float> %v, <8 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 2, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <20 x float> @llvm.tensor.concat(token %a, token %b, i32 0)
  ret void
}
