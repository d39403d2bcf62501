; A is converted and stored to memory first, from where its pairs are broadcast. Pairs of rows of B stay in
; registers, and are converted right before they are multiplied. Two rows of C are reduced while the next ones
; are multiplied.
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o - | FileCheck %s
;
; CHECK-LABEL: f:
; CHECK-NOT: (%rdx), %zmm
; CHECK-COUNT-4: vmov{{[au]}}ps %zmm{{[0-9]+}}, {{.*}}(%rsp)
; CHECK: vcvtph2ps (%rdx), %zmm
; CHECK-NOT: (%rsi), %zmm
; CHECK: vbroadcastsd {{.*}}(%rsp), %zmm
; CHECK: vcvtph2ps 96(%rdx), %zmm
; CHECK: vpermt2ps
; CHECK: vaddps
; CHECK-COUNT-8: vbroadcastsd {{.*}}(%rsp), %zmm
; CHECK: vaddps
; CHECK-COUNT-8: vbroadcastsd {{.*}}(%rsp), %zmm
; CHECK: vaddps
; CHECK: retq

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %m, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
