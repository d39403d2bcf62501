; If an element of A is read by a single multiply-add, A's address has its own register: with an index register, an
; x86-64 processor would split a broadcasting memory operand into two micro-operations. It is computed once for an unrolled
; sum, and in each iteration of a loop. If an element is read once for several multiply-adds, it has no register.
;
; REQUIRES: clang-19
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --stop-after=to-tiles | FileCheck %s --check-prefix=AVX2
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx512
; RUN: clang-19 --target=x86_64-linux-gnu -O2 -S -Wno-override-module %t.ll -o - | FileCheck %s --check-prefix=ASM

; AVX2-NOT: "=r,0"

; CHECK-LABEL: define internal void @tlx.matmul.20x16x30.f32.f32.f32(
; CHECK: %[[AT:.*]] = call ptr asm "", "=r,0"(ptr %{{.*}})
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[AT]], <2 x i32> <i32 20, i32 2>,
; CHECK-LABEL: define internal void @tlx.matmul.20x32x30.f32.f32.f32(
; CHECK-NOT: "=r,0"
; CHECK-LABEL: define internal void @tlx.matmul.8x16x16.f32.f32.f32(
; CHECK: %[[AT:.*]] = call ptr asm "", "=r,0"(ptr %{{.*}})
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[AT]],
; CHECK-NOT: "=r,0"
; CHECK-LABEL: define internal void @tlx.nest.batch(

; ASM-LABEL: tlx.matmul.20x16x30.f32.f32.f32:
; ASM-NOT: ,%r{{.*}}){1to16}
; ASM: vfmadd231ps (%r{{[a-z0-9]+}}){1to16}, %zmm
; ASM-NOT: ,%r{{.*}}){1to16}
; ASM-LABEL: tlx.nest.batch:
; ASM-NOT: ,%r{{.*}}){1to16}
; ASM: vfmadd231ps 4(%r{{[a-z0-9]+}}){1to16}, %zmm
; ASM-NOT: ,%r{{.*}}){1to16}

define void @loop(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 20, i32 30>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 30, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <320 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<320 x float> %m, <2 x i32> <i32 20, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @wide(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 20, i32 30>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 30, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <640 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<640 x float> %m, <2 x i32> <i32 20, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @batch(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 9, i32 8, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 9, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <1152 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1152 x float> %m, <3 x i32> <i32 9, i32 8, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
