; A reshape keeps the number of elements.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: permute_count_invalid.ll:14:101: error: reshape.permute: new_shape 2x5 has 10 elements and x, 3x4, has 12
; CHECK-NEXT: %u = call <10 x float> @llvm.tensor.reshape.permute(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 2, i32 5>)
; CHECK-NEXT: {{^ {100}\^~~~~~~~~~~~~~$}}
; CHECK-NEXT: permute_count_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <10 x float> @llvm.tensor.reshape.permute(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 2, i32 5>)
  ret void
}
