; Vectors of at most 8 bytes are passed as i16, i32 or double; the name contains their element type.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define i16 @bytes(i16 %v)
define i16 @bytes(i16 %v) {
; CHECK-NEXT: [[V:%.*]] = bitcast i16 %v to <2 x i8>
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v2i8.v2i32(<2 x i8> [[V]], <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %t = call i32 (...) @tensor_typeinfo_i8(i16 %v, double 0x200000001, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: [[R:%.*]] = call <2 x i8> @llvm.tensor.tovector.v2i8(token %t)
; CHECK-NEXT: %r = bitcast <2 x i8> [[R]] to i16
  %r = call i16 (i32, ...) @tensor_tovector(i32 %t)
; CHECK-NEXT: ret i16 %r
  ret i16 %r
}

; For operands narrower than the result, two element types have 32 bits, but only one is of the right kind.
; CHECK-LABEL: define i32 @widened(
define i32 @widened(i16 %v) {
  %t = call i32 (...) @tensor_typeinfo_bf16_mine(i16 %v, double 0x100000001, double 0x100000000, double 0.000000e+00)
; CHECK: [[R:%.*]] = call <1 x float> @llvm.tensor.matmul.v1f32(token %t, token %t)
; CHECK-NEXT: %r = bitcast <1 x float> [[R]] to i32
  %r = call i32 (i32, ...) @tensor_matmul(i32 %t, i32 %t)
  ret i32 %r
}

; Where the vector is still visible, it determines the element type; constants become vectors.
; CHECK-LABEL: define double @in_sight(
define double @in_sight(<2 x float> %v) {
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v2f32.v2i32(<2 x float> %v,
  %d = bitcast <2 x float> %v to double
  %t = call i32 (...) @tensor_typeinfo(double %d, double 0x200000001, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %u = call token @llvm.tensor.typeinfo.v4i8.v2i32(<4 x i8> <i8 1, i8 -1, i8 0, i8 16>,
  %u = call i32 (...) @tensor_typeinfo_i8(i32 268500737, double 0x200000002, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: [[R:%.*]] = call <2 x float> @llvm.tensor.broadcast.v2f32.f32(token %t, float 0x3FF8000000000000)
; CHECK-NEXT: %r = bitcast <2 x float> [[R]] to double
  %r = call double (i32, ...) @tensor_broadcast(i32 %t, double 1.500000e+00)
  ret double %r
}

declare i32 @tensor_typeinfo(...)
declare i32 @tensor_typeinfo_i8(...)
declare i32 @tensor_typeinfo_bf16_mine(...)
declare i16 @tensor_tovector(i32, ...)
declare i32 @tensor_matmul(i32, ...)
declare double @tensor_broadcast(i32, ...)
