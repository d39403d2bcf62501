; AVX-NE-CONVERT widens bfloat in loads: even elements of all columns and rows, then odd ones, are multiplied and added.
; Without it, bfloat is converted while packing. Nothing is spilled. llvm-mca's bound includes the conversions; LLVM 19's
; model of them is a guess: a shuffle and an addition each.
;
; REQUIRES: clang-19, llvm-mca-19, host-x86_64, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=avx2 --mcpu=sierraforest
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=alderlake --mattr=+avxneconvert --bound=1.3
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.ll --target=avx2
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=haswell --bound=1.03
; RUN: %assembly %t.s | FileCheck %s --check-prefix=PACKED --implicit-check-not="stack {{[1-9]}}"
;
; CHECK: vbcstnebf162ps ymm [[#MR:]]
; CHECK-NEXT: vcvtneebf162ps ymm [[#NV:]]
; CHECK-NEXT: vcvtneobf162ps ymm [[#NV]]
; CHECK-NEXT: vfmadd231ps ymm [[#mul(MR,NV)]]
; CHECK-NEXT: stack 0
;
; PACKED: vbroadcastss ymm [[#MR:]]
; PACKED-NEXT: vmovups ymm [[#NV:]]
; PACKED-NEXT: vfmadd231ps ymm [[#div(mul(MR,NV),4)]]
; PACKED-NEXT: stack 0

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 252, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64512 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<64512 x float> %m, <2 x i32> <i32 252, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
