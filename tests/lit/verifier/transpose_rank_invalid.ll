; Without a new layout, a transpose has two dimensions to swap.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: transpose_rank_invalid.ll:14:55: error: transpose: x has rank 1: the form without new_layout swaps the last two of at least 2 dimensions
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.transpose(token %t)
; CHECK-NEXT: {{^ {54}\^~$}}
; CHECK-NEXT: transpose_rank_invalid.ll:12:3: note: x is 12 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <1 x i32> <i32 12>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <1 x i32> <i32 12>,
      <1 x i32> <i32 0>, <1 x i32> <i32 0>)
  %u = call <12 x float> @llvm.tensor.transpose(token %t)
  ret void
}
