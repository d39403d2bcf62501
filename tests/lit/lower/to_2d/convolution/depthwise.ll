; A depthwise convolution: a block has rows of one channel, each of which reads two of the three input rows of the one
; before it, rather than the same row of all channels.
;
; RUN: tlx-lower %s -o - --stop-after=to-2d --target=avx512 | FileCheck %s
;
; CHECK-LABEL: define void @f(
; CHECK: block = phi i64
; CHECK: <2 x i32> <i32 14, i32 14>, {{.*}}<2 x i32> <i32 0, i32 16>)
; CHECK: icmp slt i64 %{{.*}}, 512

define void @f(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 512, i32 16, i32 16>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 512, i32 1, i32 3, i32 3>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <100352 x float> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 1, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<100352 x float> %c, <4 x i32> <i32 1, i32 512, i32 14, i32 14>,
      <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <4 x i32> zeroinitializer)
  ret void
}
