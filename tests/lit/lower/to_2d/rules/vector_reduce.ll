; llvm.vector.reduce.* of large vectors is a reduction of one row, into which its operand is fused, if any order is
; allowed and NaNs are propagated, or excluded. Others are loops over elements.
;
; RUN: tlx-lower %s --target=avx512 --stop-after=to-2d --check --remarks=%t.remarks | grep -v '^;' | FileCheck %s
; RUN: FileCheck %s --input-file=%t.remarks --check-prefix=REMARKS

; REMARKS: fused fmul into reduce.add
; REMARKS: fused fmul into reduce.max
; REMARKS: fused fmul into reduce.min
; REMARKS-NOT: fused

; CHECK-LABEL: define float @sum(
; CHECK: @llvm.tensor.reduce.add.v1f32
define float @sum(ptr noalias %x) {
  %v = load <8192 x float>, ptr %x
  %d = fmul <8192 x float> %v, %v
  %s = call reassoc float @llvm.vector.reduce.fadd.v8192f32(float 0.0, <8192 x float> %d)
  ret float %s
}

; CHECK-LABEL: define float @largest(
; CHECK: @llvm.tensor.reduce.max.v1f32
define float @largest(ptr noalias %x) {
  %v = load <8192 x float>, ptr %x
  %d = fmul <8192 x float> %v, %v
  %s = call nnan float @llvm.vector.reduce.fmax.v8192f32(<8192 x float> %d)
  ret float %s
}

; CHECK-LABEL: define float @smallest(
; CHECK: @llvm.tensor.reduce.min.v1f32
define float @smallest(ptr noalias %x) {
  %v = load <8192 x float>, ptr %x
  %d = fmul <8192 x float> %v, %v
  %s = call fast float @llvm.vector.reduce.fmin.v8192f32(<8192 x float> %d)
  ret float %s
}

; CHECK-LABEL: define float @largest_number(
; CHECK-NOT: reduce.max
; CHECK: call float @llvm.maxnum.f32(
define float @largest_number(ptr noalias %x) {
  %v = load <8192 x float>, ptr %x
  %d = fmul <8192 x float> %v, %v
  %s = call float @llvm.vector.reduce.fmax.v8192f32(<8192 x float> %d)
  ret float %s
}

declare float @llvm.vector.reduce.fadd.v8192f32(float, <8192 x float>)
declare float @llvm.vector.reduce.fmax.v8192f32(<8192 x float>)
declare float @llvm.vector.reduce.fmin.v8192f32(<8192 x float>)
