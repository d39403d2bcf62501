; Shape, layout and padding have one entry for each dimension.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: rank_mismatch_invalid.ll:10:17: error: typeinfo: shape has 2 entries, layout 3 and padding 2: a tensor needs one of each per dimension
; CHECK-NEXT: <3 x i32> <i32 0, i32 1, i32 2>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^ {16}\^~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <2 x i32> <i32 0, i32 0>)
  ret void
}
