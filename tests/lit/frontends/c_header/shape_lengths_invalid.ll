; Shape, layout and padding have the same number of entries.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: shape_lengths_invalid.ll:9:3: error: tensor_typeinfo: layout has 3 entries and shape has 2
; CHECK-NEXT: %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, <3 x i32> <i32 0, i32 1, i32 2>, double 0.000000e+00)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define i32 @f(<4 x float> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, <3 x i32> <i32 0, i32 1, i32 2>, double 0.000000e+00)
  ret i32 %t
}

declare i32 @tensor_typeinfo(...)
