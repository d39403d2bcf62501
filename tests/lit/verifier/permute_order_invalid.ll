; The order of a permute is a permutation.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: permute_order_invalid.ll:14:75: error: reshape.permute: perm <1, 1> is not a permutation of 0 to 1
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.reshape.permute(token %t, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 2, i32 6>)
; CHECK-NEXT: {{^ {74}\^~~~~~~~~~~~~~$}}
; CHECK-NEXT: permute_order_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.reshape.permute(token %t, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 2, i32 6>)
  ret void
}
