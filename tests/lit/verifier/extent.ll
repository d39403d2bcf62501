; Extents are at least 1.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<4 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<4 x float> %v, <2 x i32> <i32 4, i32 1>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
