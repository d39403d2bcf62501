; A result may keep padding if the return type says so unambiguously.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: matmul_padding_invalid.ll:19:3: error: matmul: <12 x float> may keep padding <1, 0> or <0, 1>: drop or keep all padding of the result
; CHECK-NEXT: %c = call <12 x float> @llvm.tensor.matmul(token %a, token %b)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_padding_invalid.ll:15:3: note: lhs is 4x4 float, padding <1, 0>
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<16 x float> %v, <2 x i32> <i32 4, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: matmul_padding_invalid.ll:17:3: note: rhs is 4x4 float, padding <0, 1>
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<16 x float> %w, <2 x i32> <i32 4, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<16 x float> %v, <16 x float> %w) {
  %a = call token @llvm.tensor.typeinfo(<16 x float> %v, <2 x i32> <i32 4, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<16 x float> %w, <2 x i32> <i32 4, i32 4>,
      <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>)
  %c = call <12 x float> @llvm.tensor.matmul(token %a, token %b)
  ret void
}
