; An unknown operation without a similar name.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: unknown_operation_of_token_invalid.ll:13:59: error: unknown tensor operation tensor_frobnicate
; CHECK-NEXT: %r = call <4 x float> (i32, ...) @tensor_frobnicate(i32 %t)
; CHECK-NEXT: {{^ {58}\^~$}}
; CHECK-NEXT: unknown_operation_of_token_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define <4 x float> @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = call <4 x float> (i32, ...) @tensor_frobnicate(i32 %t)
  ret <4 x float> %r
}

declare <4 x float> @tensor_frobnicate(i32, ...)

declare i32 @tensor_typeinfo(...)
