; Where rows of A are 4 KiB apart, each row takes an address of its own. The sums, B and A still fit into the registers.
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=neoverse-v1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -mcpu=neoverse-v1 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.s --target=sve --mcpu=neoverse-v1 --mtriple=aarch64-linux-gnu --emit=asm -O2
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=neoverse-n1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -mcpu=neoverse-n1 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-n1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.s --target=neon --mcpu=neoverse-n1 --mtriple=aarch64-linux-gnu --emit=asm -O2
; RUN: %assembly %t.s --mcpu=neoverse-n1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON --implicit-check-not="stack {{[1-9]}}"
;
; SVE: tlx.matmul.1024x1024x1024.f32.f32.f32: calls free malloc,
; SVE-NEXT: loop
; SVE-NEXT: ld1rw z 9
; SVE-NEXT: {{ldr|ld1w}} z 3
; SVE-NEXT: fmla z 27
; SVE-NEXT: stack 0
; NEON: tlx.matmul.1024x1024x1024.f32.f32.f32: calls free malloc,
; NEON-NEXT: loop
; NEON-NEXT: ldp q
; NEON-NEXT: ldr q
; NEON-NEXT: fmla v
; NEON-NEXT: stack 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1048576 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1048576 x float> %m, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
