; The proposal's product of 1 x 10 x 800 x 800 tensors returns 64000 elements.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: proposal_matmul_invalid.ll:24:3: error: matmul: returns <6400000 x i32> (1x10x800x800 i32), not <64000 x i32>
; CHECK-NEXT: %tensor3 = call <64000 x i32> @llvm.tensor.matmul(token %tensor1_token, token %tensor2_token)
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: proposal_matmul_invalid.ll:16:3: note: lhs is 1x10x800x800 i32
; CHECK-NEXT: %tensor1_token = call token @llvm.tensor.typeinfo(<6400000 x i32>* byval(<6400000 x i32>) %tensor1,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: proposal_matmul_invalid.ll:20:3: note: rhs is 1x10x800x800 i32
; CHECK-NEXT: %tensor2_token = call token @llvm.tensor.typeinfo(<6400000 x i32>* byval(<6400000 x i32>) %tensor2,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @example(<6400000 x i32>* byval(<6400000 x i32>) %tensor1,
                     <6400000 x i32>* byval(<6400000 x i32>) %tensor2) {
  %tensor1_token = call token @llvm.tensor.typeinfo(<6400000 x i32>* byval(<6400000 x i32>) %tensor1,
                                                    <4 x i32> <i32 1, i32 10, i32 800, i32 800>,
                                                    <4 x i32> <i32 0, i32 1, i32 2, i32 3>,
                                                    <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tensor2_token = call token @llvm.tensor.typeinfo(<6400000 x i32>* byval(<6400000 x i32>) %tensor2,
                                                    <4 x i32> <i32 1, i32 10, i32 800, i32 800>,
                                                    <4 x i32> <i32 0, i32 1, i32 2, i32 3>,
                                                    <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tensor3 = call <64000 x i32> @llvm.tensor.matmul(token %tensor1_token, token %tensor2_token)
  ret void
}
