; 3x3 windows with stride 2, for 256 x 14 x 14 results: the windows are copied as one matrix, which fits into an L2 of
; 2 MB, in rows of every second element. Neither the image nor the filters are transposed.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=amx -o - | FileCheck %s
; CHECK-LABEL: define void @layer(
; CHECK-NOT:     @llvm.tensor.transpose
; CHECK:         call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 14, i32 1>, {{.*}}<2 x i32> <i32 0, i32 2>)
; CHECK:         %matmul = call <50176 x float> @llvm.tensor.matmul
; CHECK-NOT:     @llvm.tensor.smma
; CHECK:         ret void
define void @layer(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 256, i32 30, i32 30>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 256, i32 256, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <50176 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <50176 x float> %y, ptr %r
  ret void
}
