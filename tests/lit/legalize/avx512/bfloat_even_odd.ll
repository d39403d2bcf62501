; Sums of bfloat: a register of 32 is two of 16 floats, one for even and one for odd elements. No element
; is permuted (no VPMOVZX, VPERMT2W, VPMOVDW): 14 instructions instead of 28.
;
; REQUIRES: clang-19, llvm-mca-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=sapphirerapids --bound=1.03
; RUN: FileCheck %s --implicit-check-not=vpmov --implicit-check-not=vperm < %t.s
;
; CHECK: .LBB1_1:
; CHECK-COUNT-8: vmovdqu64 {{.*}}(%r{{.*}}), %zmm
; CHECK: vpslld $16,
; CHECK: vaddps
; CHECK: vpaddd
; CHECK: vptestnmd
; CHECK: vpandd {{.*}} {%k
; CHECK: vpblendmd
; CHECK: vpsrld $16,
; CHECK: vpternlogd
; CHECK: vmovdqu64 %zmm{{.*}}, {{.*}}(%r

define void @f(ptr noalias %y, ptr %x0, ptr %x1) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x0, <1 x i32> <i32 16384>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %x1, <1 x i32> <i32 16384>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %va = call <16384 x bfloat> @llvm.tensor.tovector(token %a)
  %vb = call <16384 x bfloat> @llvm.tensor.tovector(token %b)
  %sum = fadd <16384 x bfloat> %va, %vb
  %t = call token @llvm.tensor.typeinfo(<16384 x bfloat> %sum, <1 x i32> <i32 16384>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}
