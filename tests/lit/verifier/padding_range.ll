; Padding is not negative and less than the extent.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 2, i32 3>)
  ret void
}
