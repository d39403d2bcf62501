; A misspelt name is reported with a suggestion.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: unknown_intrinsic_invalid.ll:11:26: error: unknown intrinsic @llvm.tensor.transposed.v12f32; did you mean @llvm.tensor.transpose?
; CHECK-NEXT: %u = call <12 x float> @llvm.tensor.transposed.v12f32(token %t)
; CHECK-NEXT: {{^ {25}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %v) {
  %t = call token @llvm.tensor.typeinfo(<12 x float> %v, <2 x i32> <i32 3, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %u = call <12 x float> @llvm.tensor.transposed.v12f32(token %t)
  ret void
}
