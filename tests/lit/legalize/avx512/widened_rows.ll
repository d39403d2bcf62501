; In an unrolled sum, each row of B is converted some steps before it is multiplied: multiply-adds that wait for it
; would fill the scheduler of the processor and delay the next conversion.
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o - | FileCheck %s
;
; CHECK-LABEL: f:
; CHECK: vcvtph2ps (%rdx), %zmm
; CHECK-NOT: vfmadd
; CHECK: vcvtph2ps 32(%rdx), %zmm[[#SECOND:]]
; CHECK-NOT: vfmadd
; CHECK: vcvtph2ps 64(%rdx), %zmm[[#THIRD:]]
; CHECK: vfmadd
; CHECK: vcvtph2ps 128(%rdx), %zmm
; CHECK: vfmadd231ps {{.*}}(%rsp){1to16}, %zmm[[#SECOND]],
; CHECK: vcvtph2ps 160(%rdx), %zmm
; CHECK: vfmadd231ps {{.*}}(%rsp){1to16}, %zmm[[#THIRD]],
; CHECK: vcvtph2ps 480(%rdx), %zmm
; CHECK-COUNT-32: vfmadd231ps {{.*}}(%rsp){1to16}, %zmm
; CHECK: retq

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
