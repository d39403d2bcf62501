; Of the dimensions that are as good, the one whose rows are nearest in memory has the rows of the products: pixels of a
; row, three floats apart in the image and 32 in the result, not those of a column.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-2d | FileCheck %s

; CHECK-LABEL: define void @channels_last(
; CHECK:       load.p0.v2i32({{.*}}, <2 x i32> <i32 64, i32 9>, {{.*}}, <2 x i32> <i32 0, i32 3>)
; CHECK:       call void @llvm.tensor.store.p0.v2i32({{.*}}, <2 x i32> <i32 0, i32 32>)
; CHECK:       ret void

define void @channels_last(ptr noalias %out, ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 2, i32 66, i32 66, i32 3>,
      <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 3, i32 3, i32 3, i32 32>,
      <4 x i32> <i32 2, i32 3, i32 1, i32 0>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <262144 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 1, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<262144 x float> %y, <4 x i32> <i32 2, i32 32, i32 64, i32 64>,
      <4 x i32> <i32 0, i32 3, i32 1, i32 2>, <4 x i32> zeroinitializer)
  %z = call <262144 x float> @llvm.tensor.reshape.permute(token %t, <4 x i32> <i32 0, i32 1, i32 2, i32 3>,
      <4 x i32> <i32 2, i32 64, i32 64, i32 32>)
  store <262144 x float> %z, ptr %out
  ret void
}
