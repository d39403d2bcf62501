; The proposal's example of convolution has a kernel of 4 rows for an input of 3.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<12 x float> %tensor1, <12 x float> %tensor2) {
  %input = call token @llvm.tensor.typeinfo(<12 x float> %tensor1,
                                            <2 x i32> <i32 3, i32 4>,
                                            <2 x i32> <i32 0, i32 1>,
                                            <2 x i32> <i32 0, i32 0>)
  %kernel = call token @llvm.tensor.typeinfo(<12 x float> %tensor2,
                                             <2 x i32> <i32 3, i32 4>,
                                             <2 x i32> <i32 0, i32 1>,
                                             <2 x i32> <i32 0, i32 0>)
  %output = call <1 x float> @llvm.tensor.convolution(token %input, token %kernel,
                                                      <2 x i32> <i32 1, i32 2>,
                                                      <2 x i32> <i32 0, i32 0>,
                                                      <2 x i32> <i32 0, i32 0>)
  ret void
}
