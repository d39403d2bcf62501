; A depthwise convolution of bytes: they are multiplied as pairs of i16, of which the
; upper half of the filter's is cleared outside of the loop over rows.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -Xclang -disable-llvm-passes -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: FileCheck %s --implicit-check-not=vpmulld < %t.s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --check-prefix=AVX2 --implicit-check-not="mul <"
;
; CHECK: .LBB1_1:
; CHECK: vpandq
; CHECK: .LBB1_2:
; CHECK-NOT: vpand
; CHECK: {{vpmaddwd|vpdpwssd}}
; CHECK-NOT: vpand
; CHECK: jl{{.*}}.LBB1_2
;
; AVX2: call <8 x i32> @llvm.x86.avx2.pmadd.wd(<16 x i16> %{{.*}}, <16 x i16> %{{.*}})

define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <4 x i32> <i32 1, i32 256, i32 30, i32 30>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %w, <4 x i32> <i32 256, i32 1, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <200704 x i32> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 1, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<200704 x i32> %c, <4 x i32> <i32 1, i32 256, i32 28, i32 28>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <4 x i32> zeroinitializer)
  ret void
}
