; A layout is a permutation of the dimensions.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: layout_permutation_invalid.ll:10:17: error: typeinfo: layout <1, 1> is not a permutation of 0 to 1
; CHECK-NEXT: <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: {{^ {16}\^~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>)
  ret void
}
