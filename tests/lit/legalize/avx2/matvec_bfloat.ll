; A bfloat matrix times a vector, without dot products: a register is shifted and masked, and both halves are multiplied.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx2
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; CHECK: tlx.reduce.add.rows.1024x1024.f32: calls nothing
; CHECK-NEXT: loop
; CHECK-NEXT: vmovdqu ymm 5
; CHECK-NEXT: vpblendw ymm 5
; CHECK-NEXT: vpslld ymm 5
; CHECK-NEXT: vfmadd231ps ymm 8
; CHECK-NEXT: stack 0

define void @bfloats(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
