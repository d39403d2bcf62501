; The token of a tensor is used by tensor intrinsics only.
;
; RUN: tlx verify %s 2>&1 | count 0

define <4 x float> @f(<4 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<4 x float> %v, <1 x i32> <i32 4>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <4 x float> @llvm.tensor.relu(token %t)
  ret <4 x float> %r
}
