; Operands of contract extend to the result's type.
;
; RUN: not tlx verify %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: contract_narrow_invalid.ll:19:52: error: contract: a has elements of type i32, which do not extend to the result's type i16
; CHECK-NEXT: %c = call <10 x i16> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT: {{^ {51}\^~$}}
; CHECK-NEXT: contract_narrow_invalid.ll:15:3: note: a is 2x3x4 i32
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo(<24 x i32> %v, <3 x i32> <i32 2, i32 3, i32 4>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: contract_narrow_invalid.ll:17:3: note: b is 4x3x5 i8
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo(<60 x i8> %w, <3 x i32> <i32 4, i32 3, i32 5>,
; CHECK-NEXT: {{^  \^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<24 x i32> %v, <60 x i8> %w) {
  %a = call token @llvm.tensor.typeinfo(<24 x i32> %v, <3 x i32> <i32 2, i32 3, i32 4>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %b = call token @llvm.tensor.typeinfo(<60 x i8> %w, <3 x i32> <i32 4, i32 3, i32 5>,
      <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>)
  %c = call <10 x i16> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 0>)
  ret void
}
