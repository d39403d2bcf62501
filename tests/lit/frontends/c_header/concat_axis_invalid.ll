; The last operand of concat is a number, not a tensor.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: concat_axis_invalid.ll:10:3: error: tensor_concat: operand axis must be an int, got a token
; CHECK-NEXT: %r = call <8 x float> (i32, ...) @tensor_concat(i32 %t, i32 %t)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define <8 x float> @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = call <8 x float> (i32, ...) @tensor_concat(i32 %t, i32 %t)
  ret <8 x float> %r
}

declare i32 @tensor_typeinfo(...)
declare <8 x float> @tensor_concat(i32, ...)
