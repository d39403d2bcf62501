; Paired batch dimensions have the same extent.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<24 x float> %v, <40 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x float> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<40 x float> %w, <3 x i32> <i32 4, i32 2, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <30 x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 2>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> <i32 1>)
  ret void
}
