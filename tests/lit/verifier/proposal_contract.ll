; The proposal's example of contract returns eight elements, but the result is 2x2.
;
; RUN: tlx verify %s 2>&1 | count 0

define void @f(<8 x float> %tensor1, <8 x float> %tensor2) {
  %input1 = call token @llvm.tensor.typeinfo(<8 x float> %tensor1,
                                            <3 x i32> <i32 2, i32 2, i32 2>,
                                            <3 x i32> <i32 0, i32 1, i32 2>,
                                            <3 x i32> <i32 0, i32 0, i32 0>)
  %input2 = call token @llvm.tensor.typeinfo(<8 x float> %tensor2,
                                             <3 x i32> <i32 2, i32 2, i32 2>,
                                             <3 x i32> <i32 0, i32 1, i32 2>,
                                             <3 x i32> <i32 0, i32 0, i32 0>)
  %output = call <4 x float> @llvm.tensor.contract(token %input1, token %input2,
                                                  <2 x i32> <i32 0, i32 2>,
                                                  <2 x i32> <i32 0, i32 1>)
  ret void
}
