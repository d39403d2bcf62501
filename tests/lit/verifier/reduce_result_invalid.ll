; The result of a reduction has one element for each window.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: reduce_result_invalid.ll:14:3: error: reduce.add: returns <6 x float> (2x3 float), not <15 x float>
; CHECK-NEXT: %c = call <15 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: reduce_result_invalid.ll:12:3: note: x is 4x6 float
; CHECK-NEXT: %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x float> %v) {
  %x = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 4, i32 6>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %c = call <15 x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
  ret void
}
