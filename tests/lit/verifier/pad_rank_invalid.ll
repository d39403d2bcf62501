; Borders have one entry for each dimension.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: pad_rank_invalid.ll:14:89: error: pad: high <1, 0, 0> must have 2 entries, the rank of x
; CHECK-NEXT: %c = call <12 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 1, i32 0>, <3 x i32> <i32 1, i32 0, i32 0>, float 0.0)
; CHECK-NEXT: {{^ {88}\^~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: pad_rank_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <12 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 1, i32 0>, <3 x i32> <i32 1, i32 0, i32 0>, float 0.0)
  ret void
}
