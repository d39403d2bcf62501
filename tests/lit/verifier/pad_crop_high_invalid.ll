; Cropping leaves at least one element, even if the other side is padded.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: pad_crop_high_invalid.ll:14:89: error: pad: low 4 and high -4 crop 4 of the 4 positions of dimension 1: at least one must remain
; CHECK-NEXT: %c = call <12 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 0, i32 4>, <2 x i32> <i32 0, i32 -4>, float 0.0)
; CHECK-NEXT: {{^ {88}\^~~~~~~~~~~~~~~$}}
; CHECK-NEXT: pad_crop_high_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <12 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 0, i32 4>, <2 x i32> <i32 0, i32 -4>, float 0.0)
  ret void
}
