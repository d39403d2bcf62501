; The proposal gives 640000 elements for 1 x 10 x 800 x 800.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: proposal_pointer_invalid.ll:10:91: error: typeinfo: expected 6400000 elements for shape 1x10x800x800, got <640000 x i32>
; CHECK-NEXT: %tensor1_token = call token @llvm.tensor.typeinfo(<640000 x i32>* byval(<640000 x i32>) %tensor1,
; CHECK-NEXT: {{^ {90}\^~~~~~~~$}}

define void @example(<640000 x i32>* byval(<640000 x i32>) %tensor1,
                     <640000 x i32>* byval(<640000 x i32>) %tensor2) {
  %tensor1_token = call token @llvm.tensor.typeinfo(<640000 x i32>* byval(<640000 x i32>) %tensor1,
                                                    <4 x i32> <i32 1, i32 10, i32 800, i32 800>,
                                                    <4 x i32> <i32 0, i32 1, i32 2, i32 3>,
                                                    <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tensor2_token = call token @llvm.tensor.typeinfo(<640000 x i32>* byval(<640000 x i32>) %tensor2,
                                                    <4 x i32> <i32 1, i32 10, i32 800, i32 800>,
                                                    <4 x i32> <i32 0, i32 1, i32 2, i32 3>,
                                                    <4 x i32> <i32 0, i32 0, i32 0, i32 0>)
  %tensor3 = call <6400000 x i32> @llvm.tensor.matmul(token %tensor1_token, token %tensor2_token)
  ret void
}
