; Scalars get the tensor's element type, which C's promotions hide.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define void @floats(
define void @floats(<4 x float> %v, <4 x half> %h, float %x, double %y) {
  %t = call i32 (...) @tensor_typeinfo(<4 x float> %v, i32 4, i32 0, i32 0)
  %u = call i32 (...) @tensor_typeinfo(<4 x half> %h, i32 4, i32 0, i32 0)
; CHECK: %a = call <4 x float> @llvm.tensor.broadcast.v4f32.f32(token %t, float %x)
  %x.promoted = fpext float %x to double
  %a = call <4 x float> (i32, ...) @tensor_broadcast(i32 %t, double %x.promoted)
; CHECK-NEXT: [[Y:%.*]] = fptrunc double %y to float
; CHECK-NEXT: %b = call <4 x float> @llvm.tensor.broadcast.v4f32.f32(token %t, float [[Y]])
  %b = call <4 x float> (i32, ...) @tensor_broadcast(i32 %t, double %y)
; CHECK-NEXT: %c = call <4 x float> @llvm.tensor.broadcast.v4f32.f32(token %t, float 0x3FB99999A0000000)
  %c = call <4 x float> (i32, ...) @tensor_broadcast(i32 %t, double 1.000000e-01)
; CHECK-NEXT: [[H:%.*]] = fptrunc double 1.000000e-01 to half
; CHECK-NEXT: %d = call <4 x half> @llvm.tensor.broadcast.v4f16.f16(token %u, half [[H]])
  %d = call <4 x half> (i32, ...) @tensor_broadcast(i32 %u, double 1.000000e-01)
  ret void
}

; CHECK-LABEL: define void @integers(
define void @integers(<4 x i8> %v, <4 x i64> %w, i8 %x, i32 %y, i64 %z) {
  %t = call i32 (...) @tensor_typeinfo(<4 x i8> %v, i32 4, i32 0, i32 0)
  %u = call i32 (...) @tensor_typeinfo(<4 x i64> %w, i32 4, i32 0, i32 0)
; CHECK: %a = call <4 x i8> @llvm.tensor.broadcast.v4i8.i8(token %t, i8 %x)
  %x.promoted = zext i8 %x to i32
  %a = call <4 x i8> (i32, ...) @tensor_broadcast(i32 %t, i32 %x.promoted)
; CHECK-NEXT: [[Y:%.*]] = trunc i32 %y to i8
; CHECK-NEXT: %b = call <4 x i8> @llvm.tensor.broadcast.v4i8.i8(token %t, i8 [[Y]])
  %b = call <4 x i8> (i32, ...) @tensor_broadcast(i32 %t, i32 %y)
; CHECK-NEXT: %c = call <4 x i8> @llvm.tensor.broadcast.v4i8.i8(token %t, i8 -56)
  %c = call <4 x i8> (i32, ...) @tensor_broadcast(i32 %t, i32 200)
; CHECK-NEXT: %d = call <4 x i64> @llvm.tensor.broadcast.v4i64.i64(token %u, i64 7)
  %d = call <4 x i64> (i32, ...) @tensor_broadcast(i32 %u, i32 7)
  ret void
}

declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_broadcast(i32, ...)
