; One channel and one filter of bfloat: windows overlap, so that packing their rows for dot products takes longer than the
; products. The image and the filter are converted once, and all products are of float. 64 filters share packed rows.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --stop-after=to-2d --target=avx512 | FileCheck %s
;
; CHECK-LABEL: define void @one(
; CHECK: fpext <65536 x bfloat>
; CHECK: store.p0.v2i32(ptr %x.buf
; CHECK: fpext <225 x bfloat>
; CHECK: batch.loop:
; CHECK-NOT: elementtype(bfloat)
; CHECK: ret void
;
; CHECK-LABEL: define void @many(
; CHECK-NOT: fpext
; CHECK: ret void

define void @one(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <4 x i32> <i32 1, i32 1, i32 256, i32 256>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <4 x i32> <i32 1, i32 1, i32 15, i32 15>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <58564 x float> @llvm.tensor.convolution(token %x, token %w)
  store <58564 x float> %y, ptr %r
  ret void
}

define void @many(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <4 x i32> <i32 1, i32 64, i32 34, i32 34>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <4 x i32> <i32 64, i32 64, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <65536 x float> @llvm.tensor.convolution(token %x, token %w)
  store <65536 x float> %y, ptr %r
  ret void
}
