; A step of two positions of K: a broadcast of a pair for each row, a load of pairs for each register across.
;
; By llvm-mca, the loops are within 3 % of the bound by the ports.
; REQUIRES: clang-19, llvm-mca-19, host-x86_64, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=sapphirerapids --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; CHECK: tlx.matmul.256x256x256.bf16.bf16.f32: calls free malloc,
; CHECK-NEXT: loop
; CHECK-NEXT: vbroadcastss zmm [[#MR:]]
; CHECK-NEXT: vmovups zmm [[#NV:]]
; CHECK-NEXT: vdpbf16ps zmm [[#mul(MR,NV)]]
; CHECK-NEXT: stack 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
