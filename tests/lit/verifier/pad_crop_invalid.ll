; Cropping leaves at least one element.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: pad_crop_invalid.ll:14:62: error: pad: low -1 and high -2 crop 3 of the 3 positions of dimension 0: at least one must remain
; CHECK-NEXT: %c = call <4 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 -1, i32 0>, <2 x i32> <i32 -2, i32 0>, float 0.0)
; CHECK-NEXT: {{^ {61}\^~~~~~~~~~~~~~~$}}
; CHECK-NEXT: pad_crop_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <4 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 -1, i32 0>, <2 x i32> <i32 -2, i32 0>, float 0.0)
  ret void
}
