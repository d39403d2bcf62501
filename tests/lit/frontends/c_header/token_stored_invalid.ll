; A token is not stored to memory.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_stored_invalid.ll:13:13: error: a tensor's token is stored to memory that is not a plain local variable: keep it in an int variable
; CHECK-NEXT: store i32 %t, ptr %p
; CHECK-NEXT: {{^ {12}\^~$}}
; CHECK-NEXT: token_stored_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v, ptr %p) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  store i32 %t, ptr %p
  ret void
}

declare i32 @tensor_typeinfo(...)
