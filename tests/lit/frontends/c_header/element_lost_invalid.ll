; The element type of a vector of 8 bytes is lost unless the name contains it.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: element_lost_invalid.ll:9:3: error: tensor_typeinfo: vectors of 8 bytes lose their element type in a call; say it in the name: tensor_typeinfo_i32 or tensor_typeinfo_f32
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(double %v, double 0x100000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(double %v) {
  %t = call i32 (...) @tensor_typeinfo(double %v, double 0x100000002, double 0x100000000, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo(...)
