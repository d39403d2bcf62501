; The sums of a step of K stay in the 32 registers. Advanced SIMD multiplies by lane: one load brings four elements of a row
; of A, for four positions of K. By llvm-mca, the loops reach what the ports allow.
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=neoverse-v2 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s --mcpu=neoverse-v2 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=neoverse-n1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-n1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=apple-m1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=apple-m1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=neoverse-v1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -mcpu=neoverse-v1 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=a64fx --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=a64fx --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE --implicit-check-not="stack {{[1-9]}}"
;
; NEON: tlx.matmul.256x256x256.f32.f32.f32: calls nothing,
; NEON-NEXT: loop
; NEON-NEXT: ldp q 1
; NEON-NEXT: ldr q {{15|17}}
; NEON-NEXT: fmla v {{72|84}}
; NEON-NEXT: stack 0
; SVE: tlx.matmul.256x256x256.f32.f32.f32: calls nothing,
; SVE-NEXT: loop
; SVE-NEXT: ld1rw z 6
; SVE-NEXT: ld1w z 4
; SVE-NEXT: fmla z 24
; SVE-NEXT: stack 0

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
