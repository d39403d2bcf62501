; In the assembly, the inner loop has as many tile loads as tile products, four of each per step of K: no tile is copied.
; A kernel configures the tiles once. clang unrolls the loop by two.
;
; REQUIRES: clang-19, host-x86_64, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=amx
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; CHECK: tlx.matmul.1024x1024x1024.bf16.bf16.f32: calls free malloc, ldtilecfg 1
; CHECK-NEXT: loop
; CHECK-NEXT: tileloadd tmm [[#LOADS:]]
; CHECK-NEXT: tileloaddt1 tmm [[#LOADS]]
; CHECK-NEXT: tdpbf16ps tmm [[#mul(LOADS,2)]]
; CHECK-NEXT: stack 0
; CHECK: tlx.matmul.100x100x1000.i8.i8.i32.ss: calls free malloc, ldtilecfg 1
; CHECK-NEXT: loop
; CHECK-NEXT: tileloadd tmm [[#LOADS:]]
; CHECK-NEXT: tileloaddt1 tmm [[#LOADS]]
; CHECK-NEXT: tdpbssd tmm [[#mul(LOADS,2)]]
; CHECK-NEXT: stack 0
; CHECK: tlx.amx.permission: calls nothing, ldtilecfg 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1048576 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1048576 x float> %m, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 100, i32 1000>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 1000, i32 100>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <10000 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<10000 x i32> %m, <2 x i32> <i32 100, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
