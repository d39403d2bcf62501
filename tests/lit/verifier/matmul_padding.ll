; A result may keep padding if the return type says so unambiguously.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<16 x float> %v, <16 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<16 x float> %v, <2 x i32> <i32 4, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<16 x float> %w, <2 x i32> <i32 4, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>)
  %c = call <16 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
