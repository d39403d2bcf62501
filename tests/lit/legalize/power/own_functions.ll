; A program's own function does not have the target's features: 8-bit floats are converted without instructions for half.
;
; RUN: grep -v '^;' %s | tlx-lower - --target=mma | FileCheck %s --implicit-check-not=xvcvhpsp --implicit-check-not=fpext
;
; CHECK: define float @f(i8 %x)

define float @f(i8 %x) {
  %y = call float @llvm.convert.from.arbitrary.fp.f32.i8(i8 %x, metadata !"Float8E5M2")
  %z = call float @llvm.convert.from.arbitrary.fp.f32.i8(i8 %x, metadata !"Float8E4M3FN")
  %s = fadd float %y, %z
  ret float %s
}

declare float @llvm.convert.from.arbitrary.fp.f32.i8(i8, metadata)
