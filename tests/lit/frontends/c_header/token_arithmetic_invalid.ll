; Arithmetic on a token.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_arithmetic_invalid.ll:13:16: error: a tensor's token is not a number: it cannot be an operand of add
; CHECK-NEXT: %r = add i32 %t, 1
; CHECK-NEXT: {{^ {15}\^~$}}
; CHECK-NEXT: token_arithmetic_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = add i32 %t, 1
  ret i32 %r
}

declare i32 @tensor_typeinfo(...)
