; A phi of a token and a number.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: merged_number_invalid.ll:10:34: error: %m is a tensor's token on one path and 0 on another: a token is not a number
; CHECK-NEXT: %m = select i1 %c, i32 %t, i32 0
; CHECK-NEXT: {{^ {33}\^$}}

define <4 x float> @f(i1 %c, <4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %m = select i1 %c, i32 %t, i32 0
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %m)
  ret <4 x float> %r
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_tovector(i32, ...)
