; Padding has one entry for each dimension.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: padding_rank_invalid.ll:10:50: error: typeinfo: shape has 3 entries, layout 3 and padding 2: a tensor needs one of each per dimension
; CHECK-NEXT: <3 x i32> <i32 0, i32 1, i32 2>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^ {49}\^~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <3 x i32> <i32 3, i32 2, i32 2>,
      <3 x i32> <i32 0, i32 1, i32 2>, <2 x i32> <i32 0, i32 0>)
  ret void
}
