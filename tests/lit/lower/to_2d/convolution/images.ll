; Four images of 392 KB, with channels innermost: the depthwise convolution reads them in place, but for two rows or
; columns at each of their edges, which are copied with the border.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s

; CHECK-LABEL: define void @images(
; CHECK-NOT:     %p.buf
; CHECK-NOT:     %bordered
; CHECK-COUNT-4: call noalias ptr @malloc(i64 8{{[0-9]+}})
; CHECK-NOT:     call noalias ptr @malloc
; CHECK:       block.loop:
; CHECK:         getelementptr inbounds float, ptr %x,
define void @images(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 4, i32 56, i32 56, i32 32>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %p = call <430592 x float> @llvm.tensor.pad(token %a, <4 x i32> <i32 0, i32 1, i32 1, i32 0>, <4 x i32> <i32 0, i32 1, i32 1, i32 0>, float 0.0)
  %q = call token @llvm.tensor.typeinfo(<430592 x float> %p, <4 x i32> <i32 4, i32 58, i32 58, i32 32>, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 1, i32 3, i32 3, i32 32>, <4 x i32> <i32 1, i32 2, i32 3, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <401408 x float> @llvm.tensor.convolution(token %q, token %b, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<401408 x float> %c, <4 x i32> <i32 4, i32 32, i32 56, i32 56>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %u = call <401408 x float> @llvm.tensor.transpose(token %t, <4 x i32> <i32 0, i32 2, i32 3, i32 1>)
  %v = call token @llvm.tensor.typeinfo(<401408 x float> %u, <4 x i32> <i32 4, i32 56, i32 56, i32 32>, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %v, <4 x i32> zeroinitializer)
  ret void
}
