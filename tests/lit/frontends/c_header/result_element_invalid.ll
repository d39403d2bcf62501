; A small result whose element type does not follow from the operands.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: result_element_invalid.ll:10:3: error: tensor_tovector_1: the result arrives as i16, a size that no result of these operands has
; CHECK-NEXT: %r = call i16 (i32, ...) @tensor_tovector_1(i32 %t)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i16 @f(i8 %v) {
  %t = call i32 (...) @tensor_typeinfo_i8(i8 %v, i32 1, i32 0, i32 0)
  %r = call i16 (i32, ...) @tensor_tovector_1(i32 %t)
  ret i16 %r
}

declare i32 @tensor_typeinfo_i8(...)
declare i16 @tensor_tovector_1(i32, ...)
