; A product with few rows of halves reads B in place, converted by the load; A, whose elements are broadcast, is
; converted once. LLVM keeps the packed A in memory, from which multiply-adds broadcast: as values in registers it
; would take a permutation each, and spill. More rows would read B more often: then it is packed. It is also packed if its
; last columns fill part of a register, unless one row tile is all of A.
;
; REQUIRES: clang-19
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx512
; RUN: clang-19 --target=x86_64-linux-gnu -O2 -S -Wno-override-module %t.ll -o - | FileCheck %s --check-prefix=ASM

; CHECK-LABEL: define internal void @tlx.matmul.16x32x16.f16.f16.f32(
; CHECK: fpext <{{.*}} x half> %{{.*}} to <{{.*}} x float>
; CHECK: call void asm sideeffect "", "r,~{memory}"(ptr %{{.*}})
; CHECK-NOT: fpext
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 {{.*}}, i32 1>,
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %{{.*}}, <2 x i32> <i32 1, i32 {{.*}}>,
; CHECK: call <{{.*}} x float> @llvm.tensor.smma
; CHECK-LABEL: define internal void @tlx.matmul.16x28x16.f16.f16.f32(
; CHECK: call void asm sideeffect "", "r,~{memory}"(ptr %{{.*}})
; CHECK: call void asm sideeffect "", "r,~{memory}"(ptr %{{.*}})
; CHECK-LABEL: define internal void @tlx.matmul.8x28x16.f16.f16.f32(
; CHECK: call void asm sideeffect "", "r,~{memory}"(ptr %{{.*}})
; CHECK-NOT: call void asm sideeffect
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %{{.*}}, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>,
; ASM-LABEL: tlx.matmul.16x32x16.f16.f16.f32:
; ASM-NOT: vperm
; ASM: vcvtph2ps {{-?[0-9]*}}(%r{{.*}}), %zmm
; ASM: vbroadcastss {{[0-9]*}}(%rsp
; ASM-NOT: vperm
; ASM-LABEL: tlx.matmul.16x28x16.f16.f16.f32:

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <512 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<512 x float> %m, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 16, i32 28>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <448 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<448 x float> %m, <2 x i32> <i32 16, i32 28>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @h(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 16, i32 28>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <224 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<224 x float> %m, <2 x i32> <i32 8, i32 28>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
