; Shapes may be computed if LLVM folds them to constants.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x float> %v) {
  %a = insertelement <2 x i32> poison, i32 3, i32 0
  %s = insertelement <2 x i32> %a, i32 4, i32 1
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> %s, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
