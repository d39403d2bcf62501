; A shape is a vector of int.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: shape_vector_invalid.ll:9:3: error: tensor_typeinfo: operand shape must be a vector of int of the tensor's rank; got <2 x i64>
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, <2 x i64> <i64 2, i64 2>, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, <2 x i64> <i64 2, i64 2>, double 0x100000000, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo(...)
