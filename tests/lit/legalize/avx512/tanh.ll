; tanh of floats: a polynomial whose coefficients are looked up in tables by the interval of the argument: 17
; arithmetic instructions per register, no division, no exponential. A small argument is the result.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not=div --implicit-check-not=scalef
;
; CHECK: loop
; CHECK-NEXT: vaddps zmm 4
; CHECK-NEXT: vandps zmm 4
; CHECK: vcmpltps zmm 4
; CHECK: vfmsub{{[0-9]+}}ps zmm 4
; CHECK-NEXT: vminps zmm 4
; CHECK: vmovups zmm 8
; CHECK-NEXT: vpermi2ps zmm 4
; CHECK-NEXT: vpermt2ps zmm 20
; CHECK-NEXT: vpternlogd zmm 4
; CHECK: vfmadd213ps zmm 24
; CHECK-NEXT: stack 0

define void @f(ptr noalias %y, ptr %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 16384>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <16384 x float> @llvm.tensor.tanh(token %a)
  %t = call token @llvm.tensor.typeinfo(<16384 x float> %v, <1 x i32> <i32 16384>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}
