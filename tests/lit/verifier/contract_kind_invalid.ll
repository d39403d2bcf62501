; Operands of contract are integers if the result is.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: contract_kind_invalid.ll:19:54: error: contract: a has elements of type i8 and the result of type float: both must be integers or both floats
; CHECK-NEXT: %c = call <10 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT: {{^ {53}\^~$}}
; CHECK-NEXT: contract_kind_invalid.ll:15:3: note: a is 2x3x4 i8
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<24 x i8> %v, <3 x i32> <i32 2, i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: contract_kind_invalid.ll:17:3: note: b is 4x3x5 i8
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<60 x i8> %w, <3 x i32> <i32 4, i32 3, i32 5>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x i8> %v, <60 x i8> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x i8> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<60 x i8> %w, <3 x i32> <i32 4, i32 3, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <10 x float> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 0>)
  ret void
}
