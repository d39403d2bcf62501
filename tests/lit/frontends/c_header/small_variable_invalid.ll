; A small vector needs a constant shape.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: small_variable_invalid.ll:9:3: error: tensor_typeinfo_i8: a tensor that arrives as i32 needs a constant shape
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo_i8(i32 %v, double %shape, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(i32 %v, double %shape) {
  %t = call i32 (...) @tensor_typeinfo_i8(i32 %v, double %shape, double 0x100000000, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo_i8(...)
