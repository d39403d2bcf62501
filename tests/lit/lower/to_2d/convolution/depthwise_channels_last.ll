; A depthwise convolution with channels innermost: rows of a block are pixels, columns are channels. Filters with taps
; innermost are copied once with taps outermost, so that each tap is a row of channels. Tiles have six rows, also for
; inputs larger than L2: they load these rows of filters, and pixels that windows share, once.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --stop-after=to-2d --target=avx512 | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --stop-after=to-tiles --target=avx512 | FileCheck %s --check-prefix=TILES
;
; CHECK-LABEL: define void @f(
; CHECK: store.p0.v2i32(ptr %w.buf, {{.*}}<2 x i32> <i32 0, i32 64>)
; CHECK: block = phi i64
; CHECK: elementtype(float) %w.buf, <2 x i32> <i32 1, i32 64>
; CHECK: ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 56, i32 64>
; CHECK: icmp slt i64 %{{.*}}, 56
;
; TILES-LABEL: define internal void @tlx.map.56x64.f32(
; TILES: <2 x i32> <i32 1, i32 16>
; TILES: <2 x i32> <i32 6, i32 16>

define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 58, i32 58, i32 64>,
      <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 64, i32 1, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <200704 x float> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 1, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<200704 x float> %c, <4 x i32> <i32 1, i32 64, i32 56, i32 56>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %u = call <200704 x float> @llvm.tensor.transpose(token %t, <4 x i32> <i32 0, i32 2, i32 3, i32 1>)
  %v = call token @llvm.tensor.typeinfo(<200704 x float> %u, <4 x i32> <i32 1, i32 56, i32 56, i32 64>,
      <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %v, <4 x i32> zeroinitializer)
  ret void
}
