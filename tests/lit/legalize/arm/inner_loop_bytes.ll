; A step of eight positions of K multiplies 4 tiles of A by 6 of B; without I8MM, dot products add four at a time, by lane on
; Advanced SIMD: one load brings sixteen elements of a row of A.
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
; RUN: %assembly %t.s | FileCheck %s --check-prefix=DOT --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=neon --mcpu=apple-m1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=apple-m1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=DOT --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=neoverse-v1 --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=neoverse-v1 --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=sve --mcpu=a64fx --mtriple=aarch64-linux-gnu
; RUN: clang-19 --target=aarch64-linux-gnu -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=a64fx --bound=1.02
; RUN: %assembly %t.s | FileCheck %s --check-prefix=SVE-DOT --implicit-check-not="stack {{[1-9]}}"
;
; NEON: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; NEON-NEXT: loop
; NEON-NEXT: ldp q 5
; NEON-NEXT: smmla v 24
; NEON-NEXT: stack 0
; DOT: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; DOT-NEXT: loop
; DOT-NEXT: ldp q {{4|6}}
; DOT-NEXT: ldr q {{7|9}}
; DOT-NEXT: sdot v {{72|84}}
; DOT-NEXT: stack 0
; SVE: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; SVE-NEXT: loop
; SVE-NEXT: ld1b z 6
; SVE-NEXT: ld1rqb z 4
; SVE-NEXT: smmla z 24
; SVE-NEXT: stack 0
; SVE-DOT: tlx.matmul.256x256x256.i8.i8.i32.ss: calls free malloc,
; SVE-DOT-NEXT: loop
; SVE-DOT-NEXT: ld1b z 4
; SVE-DOT-NEXT: ld1rw z 6
; SVE-DOT-NEXT: sdot z 24
; SVE-DOT-NEXT: stack 0

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
