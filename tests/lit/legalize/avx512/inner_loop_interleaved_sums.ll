; The nine products of a convolution's sum are interleaved: a step is a channel at each position of the kernel, unrolled. Sums
; stay in registers, and by llvm-mca the loop is within 5 % of the bound by the ports. If all registers are in use (AVX2,
; 6x16), a step is a single position, so that nothing is loaded early and spilled.
; REQUIRES: clang-19, llvm-mca-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: %assembly %t.s --mcpu=sapphirerapids --bound=1.05
; RUN: %assembly %t.s | FileCheck %s --implicit-check-not="stack {{[1-9]}}"
; RUN: tlx-lower %s -o %t.2.ll --target=avx2
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.2.ll -o %t.2.s
; RUN: %assembly %t.2.s | FileCheck %s --check-prefix=AVX2 --implicit-check-not="stack {{[1-9]}}"
;
; CHECK:      tlx.nest.rows: calls tlx.matmul.28x128x9x128.f32.f32.f32.epilogue
; CHECK-NEXT: loop
; CHECK-NEXT: vbroadcastss zmm 54
; CHECK-NEXT: vmovups zmm 36
; CHECK-NEXT: vfmadd231ps zmm 216
; CHECK-NEXT: stack 0
;
; AVX2:       vbroadcastss ymm 6
; AVX2-NEXT:  vmovups ymm 2
; AVX2-NEXT:  vfmadd231ps ymm 12
; AVX2-NEXT:  stack 0
define void @rows(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 128, i32 30, i32 30>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 128, i32 128, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <100352 x float> @llvm.tensor.convolution(token %x, token %w)
  %t = call token @llvm.tensor.typeinfo(<100352 x float> %y, <4 x i32> <i32 1, i32 128, i32 28, i32 28>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <4 x i32> zeroinitializer)
  ret void
}
