; AVX-512 without VNNI and BF16: bytes as pairs of i16, bfloat converted while packing. Nothing is spilled. VPMADDWD needs
; VPADDD as well, so the bound by the ports is twice the cycles of the products.
;
; REQUIRES: clang-19, llvm-mca-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512 --mcpu=skylake-avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=skylake-avx512 --bound=2
; RUN: %assembly %t.s | FileCheck %s --check-prefix=OLD --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=avx512 --mcpu=icelake-server
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=cascadelake --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --check-prefix=VNNI --implicit-check-not="stack {{[1-9]}}"
;
; OLD: tlx.matmul.256x256x256.i8.i8.i32.ss:
; OLD: vpaddd zmm [[#SUMS:]]
; OLD: vpmaddwd zmm [[#SUMS]]
; OLD: tlx.matmul.256x256x256.bf16.bf16.f32:
; OLD: vfmadd231ps zmm {{2[0-9]}}
;
; VNNI: tlx.matmul.256x256x256.i8.i8.i32.ss:
; VNNI: vpdpbusd zmm {{2[0-9]}}
; VNNI: tlx.matmul.256x256x256.bf16.bf16.f32:
; VNNI: vfmadd231ps zmm {{2[0-9]}}

define void @bytes(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x i32> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @bfloats(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
