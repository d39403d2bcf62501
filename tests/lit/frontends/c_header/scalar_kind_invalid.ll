; A scalar is an integer if the tensor's elements are, else a float.
;
; RUN: not tlx raise %s 2>&1 | FileCheck --strict-whitespace %s
; CHECK: scalar_kind_invalid.ll:10:3: error: tensor_broadcast: scalar is i32 and the tensor's elements are float: cast it to that type
; CHECK-NEXT: %r = call <4 x float> (i32, ...) @tensor_broadcast(i32 %t, i32 %n)
; CHECK-NEXT: {{^ {2}\^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~$}}

define <4 x float> @f(<4 x float> %v, i32 %n) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
  %r = call <4 x float> (i32, ...) @tensor_broadcast(i32 %t, i32 %n)
  ret <4 x float> %r
}

declare <4 x float> @tensor_broadcast(i32, ...)

declare i32 @tensor_typeinfo(...)
