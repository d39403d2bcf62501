; Padding is not negative and less than the extent.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: padding_range_invalid.ll:10:43: error: typeinfo: padding 3 of dimension 0 is outside 0 to 2 (shape <3, 4>)
; CHECK-NEXT: <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 3, i32 0>)
; CHECK-NEXT: {{^ {42}\^~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 3, i32 0>)
  ret void
}
