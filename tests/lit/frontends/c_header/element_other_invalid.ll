; The element type in the name is not the vector's.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: element_other_invalid.ll:9:3: error: tensor_typeinfo_i32: the name states elements of type i32, but the tensor is <4 x float>
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo_i32(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo_i32(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo_i32(...)
