; A result is a vector.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: result_type_invalid.ll:10:3: error: tensor_tovector_p: must return a vector, not ptr
; CHECK-NEXT: %r = call ptr (i32, ...) @tensor_tovector_p(i32 %t)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = call ptr (i32, ...) @tensor_tovector_p(i32 %t)
  ret void
}

declare ptr @tensor_tovector_p(i32, ...)

declare i32 @tensor_typeinfo(...)
