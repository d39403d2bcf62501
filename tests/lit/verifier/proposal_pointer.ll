; The proposal gives 640000 elements for 1 x 10 x 800 x 800.
;
; RUN: tlx verify %s 2>&1 | count 0

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
  %tensor3 = call <6400000 x i32> @llvm.tensor.matmul(token %tensor1_token, token %tensor2_token)
  ret void
}
