; Every spelling of the callee; types are those of calls, not of declarations.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0

; CHECK-LABEL: define <16 x float> @f(
define <16 x float> @f(<16 x float>* %p, <16 x float> %v) {
; CHECK-NEXT: %a = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v,
  %a = call i32 @tensor_typeinfo_plain(<16 x float> %v, double 0x400000004, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %b = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %v,
  %b = call i32 (<16 x float>, double, double, double, ...) bitcast (i32 (...)* @tensor_typeinfo to i32 (<16 x float>, double, double, double, ...)*)(<16 x float> %v, double 0x400000004, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %c = call token @llvm.vector.totensor.v16f32.v2i32(<16 x float> %v,
  %c = notail call i64 @"\01tensor_totensor"(<16 x float> %v, double 0x400000004, double 0x100000000, double 0.000000e+00)
; CHECK-NEXT: %d = call <16 x float> @llvm.tensor.matmul.v16f32(token %a, token %c)
  %d = tail call <16 x float> (i32, ...) @tensor_matmul_12(i32 noundef %a, i64 noundef %c)
; CHECK-NEXT: %e = call <16 x float> @llvm.tensor.smma.v16f32(token %a, token %b, token %c)
  %e = call <16 x float> (i32, ...) @tensor_mma(i32 %a, i32 %b, i64 %c)
; CHECK-NEXT: %g = fadd <16 x float> %d, %e
  %g = fadd <16 x float> %d, %e
  ret <16 x float> %g
}

; CHECK-NOT: @tensor_
declare i32 @tensor_typeinfo(...)
declare i32 @tensor_typeinfo_plain(i8)
declare i64 @"\01tensor_totensor"(...)
declare i32 @tensor_matmul_12(i32, ...)
declare <4 x float> @tensor_mma(i32, ...)
