; Pairs of rows of B are interleaved, and sums of pairs separated, by one instruction each. LLVM loads the full index vectors:
; it cannot shrink them to bytes, which VPMOVSXBD would widen on a multiply port.
;
; REQUIRES: llvm-19, host-x86_64
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx512 --check
; RUN: FileCheck %s < %t.ll
; RUN: llc-19 -O3 %t.ll -o - | FileCheck %s --check-prefix=ASM --implicit-check-not=vpmovsx
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --check-prefix=AVX2 --implicit-check-not=permvar --implicit-check-not=vpermi2

; CHECK-LABEL: define internal void @tlx.matmul.8x8x8.f16.f16.f32(
; CHECK: call <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float> %{{.*}}, <16 x i32> <i32 1073741824, i32 1073741832, i32 1073741825,
; CHECK: call <16 x float> @llvm.x86.avx512.vpermi2var.ps.512(<16 x float> %{{.*}}, <16 x i32> <i32 1073741824, i32 1073741826,
; CHECK: call <16 x float> @llvm.x86.avx512.vpermi2var.ps.512(<16 x float> %{{.*}}, <16 x i32> <i32 1073741825, i32 1073741827,
; CHECK-LABEL: define internal void @tlx.matmul.8x4x8.f64.f64.f64(
; CHECK: call <8 x double> @llvm.x86.avx512.vpermi2var.pd.512(<8 x double> %{{.*}}, <8 x i64> <i64 1073741824, i64 1073741826,

; ASM-COUNT-4: vpermps
; ASM-COUNT-8: vperm{{[it]}}2ps
; AVX2: define internal void @tlx.matmul.8x8x8.f16.f16.f32(

define void @halves(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %m, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @doubles(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(double) %a, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(double) %b, <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x double> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<32 x double> %m, <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
