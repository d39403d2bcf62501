; A matrix times a vector: one instruction for each line of the matrix, besides loads. Signed bytes need one more for the sign.
; Floats are multiplied and added in one instruction. The next rows are prefetched even if they fit L1.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512 --remarks 2>&1 | FileCheck %s --check-prefix=REMARK
; RUN: grep -v '^;' %t.ll | FileCheck %s --check-prefix=AHEAD
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; REMARK: reduce.add 1024x1024 float of fmul (2 extra operands) in one pass;
; REMARK: reduce.add 1024x1024 float of fpext, fpext, fmul (2 extra operands), dot products of 2, in one pass;
; REMARK: reduce.add 1024x1024 i32 of sext, zext, mul (2 extra operands), dot products of 4, in one pass;
; REMARK: reduce.add 1024x1024 i32 of xor, sext, zext, mul (2 extra operands), dot products of 4, in one pass;
;
; AHEAD-LABEL: define internal void @{{tlx}}.reduce.add.rows.1024x1024.f32(
; AHEAD-NOT: call void @llvm.prefetch
; AHEAD-LABEL: define internal void @{{tlx}}.reduce.add.rows.1024x1024.f32.1(
; AHEAD-COUNT-8: call void @llvm.prefetch
; AHEAD-NOT: call void @llvm.prefetch
; AHEAD-LABEL: define internal void @{{tlx}}.reduce.add.rows.1024x1024.i32(
;
; CHECK: tlx.reduce.add.rows.1024x1024.f32: calls nothing
; CHECK-NEXT: loop
; CHECK-NEXT: vmovups zmm 1
; CHECK-NEXT: vfmadd231ps zmm 8
; CHECK-NEXT: stack 0
; CHECK-NEXT: tlx.reduce.add.rows.1024x1024.f32.1: calls nothing
; CHECK-NEXT: loop
; CHECK-NEXT: vmovups zmm 1
; CHECK-NEXT: vdpbf16ps zmm 8
; CHECK-NEXT: stack 0
; CHECK-NEXT: tlx.reduce.add.rows.1024x1024.i32: calls nothing
; CHECK-NEXT: loop
; CHECK-NEXT: vmovdqu64 zmm 9
; CHECK-NEXT: vpdpbusd zmm 8
; CHECK-NEXT: stack 0
; CHECK-NEXT: tlx.reduce.add.rows.1024x1024.i32.1: calls nothing
; CHECK-NEXT: loop
; CHECK-NEXT: vmovdqu64 zmm 1
; CHECK-NEXT: vpxord zmm 8
; CHECK-NEXT: vpdpbusd zmm 8
; CHECK-NEXT: stack 0

define void @floats(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

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

define void @mixed(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %acc = call token @llvm.tensor.typeinfo(<1024 x i32> zeroinitializer, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %m = call <1024 x i32> @llvm.tensor.usmma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x i32> %m, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @signed(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x i32> %m, <2 x i32> <i32 1024, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
