; Logarithms of floats: fifteen instructions per register, four of which decompose numbers and two of which look up
; tables, for four registers at a time. Zeros, infinities and negative numbers need no extra instructions.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -Xclang -disable-llvm-passes -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: FileCheck %s --implicit-check-not='(%rsp' --implicit-check-not=vcmp --implicit-check-not=vfm < %t.s
;
; CHECK-LABEL: {{^}}tlx.map.1x1024.f32:
; CHECK: Loop
; CHECK-COUNT-4: vgetmantps
; CHECK-COUNT-8: vgetexpps
; CHECK-COUNT-4: vpsrld
; CHECK-COUNT-4: vpermt2ps
; CHECK-COUNT-20: vfm
; CHECK-COUNT-4: vpermi2ps
; CHECK-COUNT-4: vfm
; CHECK-COUNT-4: vmovups %zmm{{.*}}, {{.*}}(%r
; CHECK: jl

define void @f(ptr noalias %y, ptr %x) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 1024>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %e = call <1024 x float> @llvm.tensor.log(token %t)
  %u = call token @llvm.tensor.typeinfo(<1024 x float> %e, <1 x i32> <i32 1024>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %u, <1 x i32> zeroinitializer)
  ret void
}
