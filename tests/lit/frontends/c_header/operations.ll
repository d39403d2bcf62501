; Operations take any number of tokens, an int as axis, and numbers between vectors.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define void @joined(
define void @joined(<4 x float> %v, float %x) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK: %a = call <12 x float> @llvm.tensor.concat.v12f32.3(token %t, token %t, token %t, i32 1)
  %a = call <12 x float> (i32, ...) @tensor_concat(i32 %t, i32 %t, i32 %t, i32 1)
; CHECK-NEXT: %b = call <4 x float> @llvm.tensor.concat.v4f32.1(token %t, i32 0)
  %b = call <4 x float> (i32, ...) @tensor_concat_v4(i32 %t, i64 0)
; CHECK-NEXT: %c = call <6 x float> @llvm.tensor.pad.v6f32.v2i32.f32(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> {{.*}}, float %x)
  %p = fpext float %x to double
  %c = call <6 x float> (i32, ...) @tensor_pad(i32 %t, double 4.940656e-324, double 0.000000e+00, double %p)
; CHECK-NEXT: %d = call <6 x float> @llvm.tensor.pad.v6f32.v2i32.f32.v2i32(token %t, {{.*}}, float 0x3FF0000000000000, <2 x i32> <i32 0, i32 1>)
  %d = call <6 x float> (i32, ...) @tensor_pad(i32 %t, double 0.0, double 0.0, double 1.0, double 0x100000000)
  ret void
}

; CHECK-LABEL: define i16 @reduced(
define i16 @reduced(<4 x i8> %v) {
  %t = call i32 (...) @tensor_typeinfo(<4 x i8> %v, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK: [[R:%.*]] = call <2 x i8> @llvm.tensor.reduce.max.v2i8.v2i32(token %t, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 1>)
; CHECK-NEXT: %a = bitcast <2 x i8> [[R]] to i16
  %a = call i16 (i32, ...) @tensor_reduce_max(i32 %t, double 0x200000001, double 0x100000001)
; CHECK-NEXT: %b = call <4 x i8> @llvm.tensor.relu.v4i8(token %t)
  %b = call <4 x i8> (i32, ...) @tensor_relu(i32 %t)
  ret i16 %a
}

declare i32 @tensor_typeinfo(...)
declare <12 x float> @tensor_concat(i32, ...)
declare <4 x float> @tensor_concat_v4(i32, ...)
declare <6 x float> @tensor_pad(i32, ...)
declare i16 @tensor_reduce_max(i32, ...)
declare <4 x i8> @tensor_relu(i32, ...)
