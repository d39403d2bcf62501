; Arithmetic on a vector of tokens.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_packed_invalid.ll:11:22: error: a tensor's token is an element of %p: a token is not a number, keep it in an int variable
; CHECK-NEXT: %q = add <2 x i32> %p, %p
; CHECK-NEXT: {{^ {21}\^~$}}

define <2 x i32> @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %p = insertelement <2 x i32> zeroinitializer, i32 %t, i64 1
  %q = add <2 x i32> %p, %p
  ret <2 x i32> %q
}

declare i32 @tensor_typeinfo(...)
