; The element type in the name does not fit the shape.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: element_width_invalid.ll:9:3: error: tensor_typeinfo_i8: 2 elements of 32 bits, as the shape requires, are not of type i8
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo_i8(double %v, double 0x100000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(double %v) {
  %t = call i32 (...) @tensor_typeinfo_i8(double %v, double 0x100000002, double 0x100000000, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo_i8(...)
