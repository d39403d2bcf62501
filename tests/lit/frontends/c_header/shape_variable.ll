; A shape that is not constant is passed on; later steps check whether it is supported.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s

@variable = global <2 x i32> <i32 2, i32 8>

; CHECK-LABEL: @variable_shape(
define void @variable_shape(<16 x float> %v) {
; CHECK-NEXT: [[SHAPE:%.*]] = load <2 x i32>, ptr @variable, align 8
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v, <2 x i32> [[SHAPE]], <2 x i32> <i32 0, i32 1>,
  %s = load double, ptr @variable, align 8
  %a = call i32 (...) @tensor_typeinfo(<16 x float> %v, double %s, double 0x100000000, double 0.000000e+00)
  ret void
}

declare i32 @tensor_typeinfo(...)
