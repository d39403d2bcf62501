; A tensor operand is a token.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_operand_invalid.ll:14:3: error: tensor_matmul: operand rhs must be the token of a tensor, made by tensor_typeinfo or tensor_load; got i32 %m
; CHECK-NEXT: %r = call <4 x float> (i32, ...) @tensor_matmul(i32 %t, i32 %m)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}
; CHECK-NEXT: token_operand_invalid.ll:13:3: note: defined here
; CHECK-NEXT: %m = add i32 %n, 1
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~$}}

define <4 x float> @f(<4 x float> %v, i32 %n) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %m = add i32 %n, 1
  %r = call <4 x float> (i32, ...) @tensor_matmul(i32 %t, i32 %m)
  ret <4 x float> %r
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_matmul(i32, ...)
