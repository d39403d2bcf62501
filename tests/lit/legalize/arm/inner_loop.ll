; A step of K keeps its sums in the 32 registers. By llvm-mca, the loops are within 6 % of the bound by the ports.
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=neoverse-v2 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.07
; RUN: %assembly %t.s --mcpu=neoverse-v2 --bound=1.05
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON-0 --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=neoverse-v1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE-1 --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=a64fx --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=a64fx --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE-2 --implicit-check-not="stack {{[1-9]}}"
;
; NEON-0: tlx.matmul.256x256x256.f32.f32.f32: calls nothing,
; NEON-0-NEXT: loop
; NEON-0-NEXT: ld1r v 1
; NEON-0-NEXT: ldp q 2
; NEON-0-NEXT: ldr q 1
; NEON-0-NEXT: fmla v 25
; NEON-0-NEXT: stack 0
; SVE-1: tlx.matmul.256x256x256.f32.f32.f32: calls nothing,
; SVE-1-NEXT: loop
; SVE-1-NEXT: ld1rw z 6
; SVE-1-NEXT: ld1w z 4
; SVE-1-NEXT: fmla z 24
; SVE-1-NEXT: stack 0
; SVE-2: tlx.matmul.256x256x256.f32.f32.f32: calls nothing,
; SVE-2-NEXT: loop
; SVE-2-NEXT: ld1rw z 6
; SVE-2-NEXT: ld1w z 4
; SVE-2-NEXT: fmla z 24
; SVE-2-NEXT: stack 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
