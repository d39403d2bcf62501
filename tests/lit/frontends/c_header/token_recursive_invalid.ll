; A token is not passed to a function that calls itself: it cannot be inlined.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: token_recursive_invalid.ll:9:3: error: tensor_tovector: operand x must be the token of a tensor, made by tensor_typeinfo or tensor_load; got i32 %t: a function that takes tokens must be one that can be inlined
; CHECK-NEXT: %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define internal void @use(i32 %t, i32 %n) {
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
  call void @use(i32 %t, i32 %n)
  ret void
}

define void @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  call void @use(i32 %t, i32 3)
  ret void
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_tovector(i32, ...)
