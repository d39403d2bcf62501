; A layout is a permutation.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: shape_layout_invalid.ll:9:3: error: tensor_typeinfo: layout <2, 2> is not a permutation of 0 to 1
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x200000002, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x200000002, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo(...)
