; The proposal's example of contract returns eight elements, but the result is 2x2.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: proposal_contract_invalid.ll:23:3: error: contract: returns <4 x float> (2x2 float), not <8 x float>
; CHECK-NEXT: %output = call <8 x float> @llvm.tensor.contract(token %input1, token %input2,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: proposal_contract_invalid.ll:15:3: note: a is 2x2x2 float
; CHECK-NEXT: %input1 = call token @llvm.tensor.typeinfo(<8 x float> %tensor1,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: proposal_contract_invalid.ll:19:3: note: b is 2x2x2 float
; CHECK-NEXT: %input2 = call token @llvm.tensor.typeinfo(<8 x float> %tensor2,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<8 x float> %tensor1, <8 x float> %tensor2) {
  %input1 = call token @llvm.tensor.typeinfo(<8 x float> %tensor1,
                                            <3 x i32> <i32 2, i32 2, i32 2>,
                                            <3 x i32> <i32 0, i32 1, i32 2>,
                                            <3 x i32> <i32 0, i32 0, i32 0>)
  %input2 = call token @llvm.tensor.typeinfo(<8 x float> %tensor2,
                                             <3 x i32> <i32 2, i32 2, i32 2>,
                                             <3 x i32> <i32 0, i32 1, i32 2>,
                                             <3 x i32> <i32 0, i32 0, i32 0>)
  %output = call <8 x float> @llvm.tensor.contract(token %input1, token %input2,
                                                  <2 x i32> <i32 0, i32 2>,
                                                  <2 x i32> <i32 0, i32 1>)
  ret void
}
