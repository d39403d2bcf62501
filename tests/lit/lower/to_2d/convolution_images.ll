; Four images of 392 KB, with channels innermost, are padded one after the other, each into the same buffer, which stays
; in L2 while the depthwise convolution reads it. Threads cannot share it: all images are padded first.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --threads=openmp -o - | FileCheck %s --check-prefix=THREADS

; CHECK-LABEL: define void @images(
; CHECK-NOT:     %p.buf
; CHECK:         %bordered.heap = call noalias ptr @malloc(i64 430656)
; CHECK:       part.loop:
; CHECK:         %[[X:.*]] = mul i64 %part, 100352
; CHECK:         %[[FROM:.*]] = getelementptr inbounds float, ptr %x, i64 %[[X]]
; CHECK:         call void @llvm.memset
; CHECK:         @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[FROM]], <2 x i32> <i32 56, i32 1792>
; CHECK:       block.loop:
; CHECK:         getelementptr inbounds float, ptr %bordered.buf
; CHECK:         icmp slt i64 %part.next, 4

; THREADS-NOT:   part.loop
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
