; Blocks of few positions along K do not fill tiles: stage 2 computes them with vectors even if there is a matrix unit.
; The blocks are then those chosen for vectors: filters as columns, 9 sums of 3 x 16 channels, not 27 of 16.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --stop-after=to-2d --target=amx | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --stop-after=to-2d --target=avx512 | FileCheck %s
;
; CHECK-LABEL: define void @f(
; CHECK: store.p0.v2i32(ptr %last.buf
; CHECK: batch.loop
; CHECK: <2 x i32> <i32 14, i32 48>
; CHECK: <2 x i32> <i32 48, i32 16>

define void @f(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %p, <5 x i32> <i32 1, i32 16, i32 16, i32 16, i32 16>, <5 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4>, <5 x i32> zeroinitializer, <5 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(i8) %q, <5 x i32> <i32 16, i32 16, i32 3, i32 3, i32 3>, <5 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4>, <5 x i32> zeroinitializer, <5 x i32> zeroinitializer)
  %y = call <43904 x i32> @llvm.tensor.convolution(token %x, token %w)
  store <43904 x i32> %y, ptr %r
  ret void
}
