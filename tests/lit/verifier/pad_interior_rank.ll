; Interior padding has one entry for each dimension.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <21 x float> @llvm.tensor.pad(token %x, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer, float 0.0, <2 x i32> <i32 0, i32 1>)
  ret void
}
