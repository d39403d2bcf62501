; Windows over images: tiles of several rows load each row of the input once. If the images of all iterations of the loop do
; not fit L2, single rows are faster: memory is read and written sequentially.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 --stop-after=to-tiles -o - | FileCheck %s

; CHECK-LABEL: define internal void @tlx.map.56x56.f32(
; CHECK:         %out = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %{{.*}}, <2 x i32> <i32 1, i32 16>,
; CHECK-NOT:     typeinfo.v96f32
; CHECK-LABEL: define internal void @tlx.map.54x54.f32(
; CHECK:         %out = call token @llvm.tensor.typeinfo.v96f32.v2i32(<96 x float> %{{.*}}, <2 x i32> <i32 6, i32 16>,
define void @far(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 128, i32 58, i32 58>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 128, i32 1, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <401408 x float> @llvm.tensor.convolution(token %x, token %w)
  %t = call token @llvm.tensor.typeinfo(<401408 x float> %y, <4 x i32> <i32 1, i32 128, i32 56, i32 56>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <4 x i32> zeroinitializer)
  ret void
}

define void @near(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 16, i32 56, i32 56>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 16, i32 1, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <46656 x float> @llvm.tensor.convolution(token %x, token %w)
  %t = call token @llvm.tensor.typeinfo(<46656 x float> %y, <4 x i32> <i32 1, i32 16, i32 54, i32 54>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <4 x i32> zeroinitializer)
  ret void
}
