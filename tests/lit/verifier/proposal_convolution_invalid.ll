; The proposal's example of convolution has a kernel of 4 rows for an input of 3.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: proposal_convolution_invalid.ll:23:75: error: convolution: w is larger than x in dimension 0: 4 and 3 positions
; CHECK-NEXT: %output = call <9 x float> @llvm.tensor.convolution(token %input, token %kernel,
; CHECK-NEXT: {{^ {74}\^~~~~~~$}}
; CHECK-NEXT: proposal_convolution_invalid.ll:15:3: note: x is 3x4 float
; CHECK-NEXT: %input = call token @llvm.tensor.typeinfo(<12 x float> %tensor1,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: proposal_convolution_invalid.ll:19:3: note: w is 4x3 float
; CHECK-NEXT: %kernel = call token @llvm.tensor.typeinfo(<12 x float> %tensor2,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<12 x float> %tensor1, <12 x float> %tensor2) {
  %input = call token @llvm.tensor.typeinfo(<12 x float> %tensor1,
                                            <2 x i32> <i32 3, i32 4>,
                                            <2 x i32> <i32 0, i32 1>,
                                            <2 x i32> <i32 0, i32 0>)
  %kernel = call token @llvm.tensor.typeinfo(<12 x float> %tensor2,
                                             <2 x i32> <i32 4, i32 3>,
                                             <2 x i32> <i32 0, i32 1>,
                                             <2 x i32> <i32 0, i32 0>)
  %output = call <9 x float> @llvm.tensor.convolution(token %input, token %kernel,
                                                      <2 x i32> <i32 1, i32 2>,
                                                      <2 x i32> <i32 0, i32 0>,
                                                      <2 x i32> <i32 0, i32 0>)
  ret void
}
