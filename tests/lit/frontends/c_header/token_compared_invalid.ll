; A comparison of tokens.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_compared_invalid.ll:13:20: error: a tensor's token is not a number: it cannot be an operand of icmp eq
; CHECK-NEXT: %c = icmp eq i32 %t, 0
; CHECK-NEXT: {{^ {19}\^~$}}
; CHECK-NEXT: token_compared_invalid.ll:12:3: note: defined here
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %c = icmp eq i32 %t, 0
  br i1 %c, label %a, label %b

a:
  ret void

b:
  ret void
}

declare i32 @tensor_typeinfo(...)
