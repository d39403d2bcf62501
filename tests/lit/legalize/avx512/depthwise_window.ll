; A depthwise convolution of 7 x 7 with channels innermost: a tile has six pixels of a column. The products of a column of
; the kernel load 7 registers of filters and 12 of pixels, each once; some of these 133 loads are part of products.
;
; REQUIRES: clang-19, host-x86_64, llvm-filecheck
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -Xclang -disable-llvm-passes -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
;
; CHECK: loop
; CHECK-NEXT: vmovups zmm 125
; CHECK-NEXT: vmulps zmm 6
; CHECK-NEXT: vfmadd231ps zmm 288
; CHECK-NEXT: stack 0

define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 62, i32 60, i32 96>,
      <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 7, i32 7, i32 1, i32 96>,
      <4 x i32> <i32 2, i32 3, i32 1, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <290304 x float> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 1, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<290304 x float> %c, <4 x i32> <i32 1, i32 96, i32 56, i32 54>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %u = call <290304 x float> @llvm.tensor.transpose(token %t, <4 x i32> <i32 0, i32 2, i32 3, i32 1>)
  %v = call token @llvm.tensor.typeinfo(<290304 x float> %u, <4 x i32> <i32 1, i32 56, i32 54, i32 96>,
      <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %v, <4 x i32> zeroinitializer)
  ret void
}
