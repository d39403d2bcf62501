; Each blocked dimension has a size.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: block_count_invalid.ll:14:99: error: reshape.block: dims <0, 1> and sizes <3> must have the same number of entries
; CHECK-NEXT: %u = call <18 x float> @llvm.tensor.reshape.block(token %t, <2 x i32> <i32 0, i32 1>, <1 x i32> <i32 3>)
; CHECK-NEXT: {{^ {98}\^~~~~~~$}}
; CHECK-NEXT: block_count_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <18 x float> @llvm.tensor.reshape.block(token %t, <2 x i32> <i32 0, i32 1>, <1 x i32> <i32 3>)
  ret void
}
