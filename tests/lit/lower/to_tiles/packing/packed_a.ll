; A row tile of A with contiguous rows is converted as a whole: 13 rows of 19 are 15 registers and
; one that overlaps the previous one, so that it ends with the last element. No element is converted alone. If all of B's
; columns are one panel, a row tile is packed right before its only product.
;
; REQUIRES: clang-19
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o %t.ll --target=avx512
; RUN: clang-19 --target=x86_64-linux-gnu -O2 -S -Wno-override-module %t.ll -o - | FileCheck %s --check-prefix=ASM

; CHECK-LABEL: define internal void @tlx.matmul.13x16x19.f16.f16.f32(
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %a, <2 x i32> <i32 8, i32 16>,
; CHECK: %[[REST:.*]] = getelementptr inbounds half, ptr %a, i64 128
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %[[REST]], <2 x i32> <i32 7, i32 16>,
; CHECK: %[[LAST:.*]] = getelementptr inbounds half, ptr %a, i64 231
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %[[LAST]], <2 x i32> <i32 1, i32 16>,
; CHECK: call void asm sideeffect "", "r,~{memory}"(ptr %{{.*}})
; CHECK-NOT: call void asm sideeffect
; CHECK-LABEL: define internal void @tlx.matmul.32x32x32.f16.f16.f32(
; CHECK: ic.loop:
; CHECK: fpext <128 x half>
; CHECK: call <352 x float> @llvm.tensor.smma

; A short sum is fully unrolled: its elements of A are broadcast by the multiply-adds, without an index.
; ASM-LABEL: tlx.matmul.16x16x16.f16.f16.f32:
; ASM: vfmadd231ps {{[0-9]*}}(%rsp){1to16}, %zmm{{[0-9]+}}, %zmm
; ASM-NOT: vperm
; ASM-NOT: vmovups {{.*}}(%rsp), %zmm
; ASM: vzeroupper

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 13, i32 19>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 19, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <208 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<208 x float> %m, <2 x i32> <i32 13, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @h(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
