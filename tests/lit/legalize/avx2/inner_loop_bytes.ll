; Bytes: with AVX-VNNI-INT8 a dot product of any signs; with AVX-VNNI of u8 by s8, one operand offset; else pairs of i16.
; Nothing is spilled. By llvm-mca, dot products are within 3 % of the bound by the ports; VPMADDWD also needs VPADDD, on
; three ports, two of which multiply: 4/3.
;
; REQUIRES: clang-19, llvm-mca-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx2 --mcpu=sierraforest
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=alderlake --mattr=+avxvnniint8 --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --check-prefix=INT8 --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=avx2 --mcpu=alderlake
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=alderlake --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --check-prefix=VNNI --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=avx2 --mcpu=skylake
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=alderlake --bound=1.36
; RUN: %assembly %t.s | FileCheck %s --check-prefix=PAIRS --implicit-check-not="stack {{[1-9]}}"
;
; INT8: vpdpbssd ymm {{1[0-9]}}
; VNNI: vpdpbusd ymm {{1[0-9]}}
; PAIRS: vpaddd ymm [[#SUMS:]]
; PAIRS: vpmaddwd ymm [[#SUMS]]

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x i32> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
