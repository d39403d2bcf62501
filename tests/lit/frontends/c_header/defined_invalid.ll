; A placeholder has no body.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: defined_invalid.ll:8:1: error: @tensor_matmul_mine is a placeholder for a tensor operation and has a body: rename the function
; CHECK-NEXT: define <4 x float> @tensor_matmul_mine(i32 %a, i32 %b) {
; CHECK-NEXT: {{^ {0}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define <4 x float> @tensor_matmul_mine(i32 %a, i32 %b) {
  ret <4 x float> zeroinitializer
}

define <4 x float> @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = call <4 x float> @tensor_matmul_mine(i32 %t, i32 %t)
  ret <4 x float> %r
}

declare i32 @tensor_typeinfo(...)
