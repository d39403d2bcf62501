; With vectors as wide as the host's, the generic target's inner loop is that of the host's own target.
;
; REQUIRES: clang-19, llvm-mca-19, host-x86_64, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=generic --mcpu=skylake-avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=skylake-avx512 --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --check-prefix=ZMM --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=generic --vector-bits=512
; RUN: clang-19 -O2 -march=skylake-avx512 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --check-prefix=ZMM --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=generic --mcpu=haswell
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=haswell --bound=1.05
; RUN: %assembly %t.s | FileCheck %s --check-prefix=YMM --implicit-check-not="stack {{[1-9]}}"
; With 16 registers, an iteration has four steps, each of 12 multiply-adds, 6 broadcasts and 2 loads.
;
; ZMM: vbroadcastss zmm [[#MR:]]
; ZMM-NEXT: vmovups zmm [[#NV:]]
; ZMM-NEXT: vfmadd231ps zmm [[#mul(MR,NV)]]
; YMM: vbroadcastss ymm [[#MR:]]
; YMM-NEXT: vmovups ymm [[#NV:]]
; YMM-NEXT: vfmadd231ps ymm [[#div(mul(MR,NV),4)]]

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <262144 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<262144 x float> %m, <2 x i32> <i32 512, i32 512>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
