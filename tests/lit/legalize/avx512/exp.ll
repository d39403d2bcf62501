; exp of floats: sixteen instructions per register, one of which looks up a power of 2^(1/32) in a table in two registers,
; for four registers at a time. Three of them compute subnormal results as integers, as VSCALEFPS is slow for those.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -Xclang -disable-llvm-passes -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: FileCheck %s --implicit-check-not='(%rsp' --implicit-check-not=vscalef --implicit-check-not=vfm < %t.s
;
; CHECK-LABEL: {{^}}tlx.map.1x1024.f32:
; CHECK: Loop
; CHECK-COUNT-4: vmaxps
; CHECK-COUNT-4: vminps
; CHECK-COUNT-12: vfmadd
; CHECK-COUNT-4: vpermi2ps
; CHECK-COUNT-4: vfmadd
; CHECK-COUNT-4: vmulps
; CHECK-COUNT-4: vfmadd
; CHECK-COUNT-4: vscalefps
; CHECK-COUNT-4: vcvtps2dq
; CHECK-COUNT-4: vmovups %zmm{{.*}}, {{.*}}(%r
; CHECK: jl

define void @f(ptr noalias %y, ptr %x) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 1024>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %e = call <1024 x float> @llvm.tensor.exp(token %t)
  %u = call token @llvm.tensor.typeinfo(<1024 x float> %e, <1 x i32> <i32 1024>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}
