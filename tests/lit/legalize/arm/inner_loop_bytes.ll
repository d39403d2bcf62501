; A step of eight positions of K multiplies 4 tiles of A by 6 of B; without I8MM, dot products add four at a time.
; On Neoverse N1, a load that repeats a word also takes a slot of a vector pipe.
;
; REQUIRES: clang-19, llvm-mca-19, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=neoverse-v2 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s --mcpu=neoverse-v2 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON-0 --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=neoverse-n1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-n1 --bound=1.21
; RUN: %assembly %t.s | FileCheck %s --check-prefix=NEON-1 --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=neoverse-v1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE-2 --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=a64fx --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=a64fx --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE-3 --implicit-check-not="stack {{[1-9]}}"
;
; NEON-0: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; NEON-0-NEXT: loop
; NEON-0-NEXT: ldp q 5
; NEON-0-NEXT: smmla v 24
; NEON-0-NEXT: stack 0
; NEON-1: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; NEON-1-NEXT: loop
; NEON-1-NEXT: ld1r v 5
; NEON-1-NEXT: ldp q 2
; NEON-1-NEXT: ldr q 1
; NEON-1-NEXT: sdot v 25
; NEON-1-NEXT: stack 0
; SVE-2: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; SVE-2-NEXT: loop
; SVE-2-NEXT: ld1b z 6
; SVE-2-NEXT: ld1rqb z 4
; SVE-2-NEXT: smmla z 24
; SVE-2-NEXT: stack 0
; SVE-3: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; SVE-3-NEXT: loop
; SVE-3-NEXT: ld1b z 4
; SVE-3-NEXT: ld1rw z 6
; SVE-3-NEXT: sdot z 24
; SVE-3-NEXT: stack 0

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
