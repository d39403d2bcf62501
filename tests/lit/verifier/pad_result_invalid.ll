; The result includes the added elements.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: pad_result_invalid.ll:14:3: error: pad: returns <12 x float> (4x3 float), not <9 x float>
; CHECK-NEXT: %c = call <9 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 -1>, float 0.0)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: pad_result_invalid.ll:12:3: note: x is 3x4 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <9 x float> @llvm.tensor.pad(token %x, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 -1>, float 0.0)
  ret void
}
