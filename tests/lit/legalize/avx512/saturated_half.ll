; Half is converted to i16 with saturation by way of float: with AVX512-FP16, LLVM turns NaN into -32768.
; RUN: tlx-lower --target=avx512 --mattr=+avx512fp16 %s | FileCheck %s
; RUN: tlx-lower --target=avx2 %s | FileCheck %s
; RUN: tlx-lower --target=amx %s | FileCheck %s

define void @f(ptr %x, ptr %y, half %s, ptr %z) {
  %v = load <17 x half>, ptr %x, align 2
  %r = call <17 x i16> @llvm.fptosi.sat.v17i16.v17f16(<17 x half> %v)
  %t = call token @llvm.tensor.typeinfo(<17 x i16> %r, <1 x i32> <i32 17>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  %i = call i16 @llvm.fptosi.sat.i16.f16(half %s)
  store i16 %i, ptr %z
  %b = call i8 @llvm.fptosi.sat.i8.f16(half %s)
  store i8 %b, ptr %z
  ret void
}
; CHECK-LABEL: define void @f(
; CHECK:         [[V:%[^ ]+]] = fpext <17 x half> %v to <17 x float>
; CHECK:         call <17 x i16> @llvm.fptosi.sat.v17i16.v17f32(<17 x float> [[V]])
; CHECK:         [[S:%[^ ]+]] = fpext half %s to float
; CHECK:         call i16 @llvm.fptosi.sat.i16.f32(float [[S]])
; CHECK:         call i8 @llvm.fptosi.sat.i8.f16(half %s)

; A vector whose elements would be too many floats for a value of a function is converted in parts.
define void @large(ptr %x, ptr %y) {
  %v = load <257 x half>, ptr %x, align 2
  %r = call <257 x i16> @llvm.fptosi.sat.v257i16.v257f16(<257 x half> %v)
  %t = call token @llvm.tensor.typeinfo(<257 x i16> %r, <1 x i32> <i32 257>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}
; CHECK-LABEL: define void @large(
; CHECK-NOT:     <257 x float>
; CHECK:         ret void

declare <257 x i16> @llvm.fptosi.sat.v257i16.v257f16(<257 x half>)
declare <17 x i16> @llvm.fptosi.sat.v17i16.v17f16(<17 x half>)
declare i16 @llvm.fptosi.sat.i16.f16(half)
declare i8 @llvm.fptosi.sat.i8.f16(half)
