; The address of a placeholder is not taken in a function.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: address_taken_invalid.ll:10:3: error: the address of @tensor_matmul is taken: a placeholder can only be called
; CHECK-NEXT: store ptr @tensor_matmul, ptr %p
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define void @f(<4 x float> %v, ptr %p) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  store ptr @tensor_matmul, ptr %p
  ret void
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_matmul(i32, ...)
