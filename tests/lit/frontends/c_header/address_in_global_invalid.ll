; The address of a placeholder is not taken in a global variable.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: address_in_global_invalid.ll:8:32: error: the address of @tensor_matmul is taken: a placeholder can only be called
; CHECK-NEXT: @table = global [1 x ptr] [ptr @tensor_matmul]
; CHECK-NEXT: {{^ {31}\^~~~~~~~~~~~~~$}}

@table = global [1 x ptr] [ptr @tensor_matmul]

define void @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  ret void
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_matmul(i32, ...)
