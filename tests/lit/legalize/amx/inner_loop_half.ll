; With AMX-FP16, the inner loop of a product of halves is like that of bfloat: as many tile loads as tile products, no copies,
; whether the right operand is packed or already interleaved in pairs of rows. LLVM 14 compiles the text to the same code.
;
; REQUIRES: clang-19, opt-14, host-x86_64, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=amx+amx-fp16
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
; RUN: opt-14 -S -opaque-pointers %t.ll -o %t.14.ll
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.14.ll -o %t.14.s
; RUN: %assembly %t.14.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; CHECK: tlx.matmul.256x256x1024.f16.f16.f32: calls free malloc, ldtilecfg 1
; CHECK-NEXT: loop
; CHECK-NEXT: tileloadd tmm [[#LOADS:]]
; CHECK-NEXT: tileloaddt1 tmm [[#LOADS]]
; CHECK-NEXT: tdpfp16ps tmm [[#mul(LOADS,2)]]
; CHECK-NEXT: stack 0
; CHECK: tlx.matmul.64x64x1024.f16.f16.f32: calls nothing, ldtilecfg 1
; CHECK-NEXT: loop
; CHECK-NEXT: tileloadd tmm [[#LOADS:]]
; CHECK-NEXT: tileloaddt1 tmm [[#LOADS]]
; CHECK-NEXT: tdpfp16ps tmm [[#mul(LOADS,2)]]
; CHECK-NEXT: stack 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 256, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(half) %b, <2 x i32> <i32 1024, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 64, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %groups = call token @llvm.tensor.load(ptr elementtype(half) %b, <3 x i32> <i32 512, i32 64, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>,
      <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %flat = call <65536 x half> @llvm.tensor.reshape.permute(token %groups, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 1024, i32 64>)
  %rhs = call token @llvm.tensor.typeinfo(<65536 x half> %flat, <2 x i32> <i32 1024, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %m, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
