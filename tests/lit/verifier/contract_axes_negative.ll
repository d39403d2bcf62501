; Axes are not negative.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<24 x float> %v, <60 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<60 x float> %w, <3 x i32> <i32 4, i32 3, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <10 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 0>)
  ret void
}
