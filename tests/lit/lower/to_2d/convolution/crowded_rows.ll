; Rows of the result's filters lie 16 KB apart: columns of 64 filters would share a set of the first-level cache, so
; that blocks have filters as rows, and pixels as columns.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx2 -o - | FileCheck %s

; CHECK-LABEL: define void @crowded(
; CHECK-NOT:     @llvm.tensor.transpose
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %y, token %product, <2 x i32> <i32 0, i32 4096>)
; CHECK-NOT:     @llvm.tensor.transpose
define void @crowded(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 3, i32 66, i32 66>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 64, i32 3, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <262144 x float> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 1, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <262144 x float> %c, ptr %y
  ret void
}
