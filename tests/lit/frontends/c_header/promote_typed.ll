; With typed pointers, a variable read as another type is read through a bitcast of its address.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define <4 x float> @f(
; CHECK-NEXT: %t = call token @llvm.tensor.typeinfo.v4f32.v2i32(<4 x float> %v, <2 x i32> <i32 2, i32 2>,
; CHECK-NEXT: %r = call <4 x float> @llvm.tensor.tovector.v4f32(token %t)
; CHECK-NEXT: ret <4 x float> %r
define <4 x float> @f(<4 x float> %v) {
  %coerced = alloca <2 x i32>, align 8
  %marker = bitcast <2 x i32>* %coerced to i8*
  call void @llvm.lifetime.start.p0i8(i64 8, i8* %marker)
  store <2 x i32> <i32 2, i32 2>, <2 x i32>* %coerced, align 8
  %as.double = bitcast <2 x i32>* %coerced to double*
  %shape = load double, double* %as.double, align 8
  %t = call i32 (<4 x float>, double, double, double, ...) bitcast (i32 (...)* @tensor_typeinfo to i32 (<4 x float>, double, double, double, ...)*)(<4 x float> %v, double %shape, double 0x100000000, double 0.000000e+00)
  call void @llvm.lifetime.end.p0i8(i64 8, i8* %marker)
  %r = call <4 x float> (i32, ...) @tensor_tovector(i32 %t)
  ret <4 x float> %r
}

declare void @llvm.lifetime.start.p0i8(i64, i8*)
declare void @llvm.lifetime.end.p0i8(i64, i8*)
declare i32 @tensor_typeinfo(...)
declare <4 x float> @tensor_tovector(i32, ...)
