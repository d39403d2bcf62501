; Sums over even and odd positions of K side by side: A's pairs are broadcast by the load, which does not use a multiply
; port, and multiplied with a pair of B from the stack in one multiply-add per row.
; REQUIRES: clang-19, llvm-mca-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[2-9]}}"
;
; CHECK: tlx.matmul.64x8x96.f32.f32.f32: calls nothing
; CHECK: loop
; CHECK: vbroadcastsd zmm [[#MR:]]
; CHECK-NEXT: vmov{{[au]}}ps zmm 1
; CHECK-NEXT: vfmadd231ps zmm [[#MR]]
; CHECK-NEXT: stack 1

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 64, i32 96>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 96, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <512 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<512 x float> %m, <2 x i32> <i32 64, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
