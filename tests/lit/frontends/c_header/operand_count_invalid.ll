; Too many or too few operands.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: operand_count_invalid.ll:10:3: error: tensor_matmul: expected operands (lhs, rhs), got 1 operand
; CHECK-NEXT: %r = call <4 x float> (i32, ...) @tensor_matmul(i32 %t)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define <4 x float> @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = call <4 x float> (i32, ...) @tensor_matmul(i32 %t)
  ret <4 x float> %r
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_matmul(i32, ...)
