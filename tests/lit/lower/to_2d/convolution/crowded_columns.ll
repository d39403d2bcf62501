; Filters as columns of blocks, whose result is stored transposed. The columns of a panel, 16 of them on AVX2, have to
; stay in the first-level cache until their lines are full: lines 49 KB apart share sets with every 32nd of them only,
; lines 16 KB apart with every eighth. Blocks of the latter convolution have pixels as columns.
;
; RUN: tlx-lower %s -o %t.o.ll --target=avx2 --remarks=- | FileCheck %s

; CHECK: matmul 112x64x7*21 float: {{.*}} C stored column by column
; CHECK: matmul 64x4096x27 float:
; CHECK-NOT: C stored column by column

define void @first_layer(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %x.t = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 3, i32 230, i32 230>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w.t = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 64, i32 3, i32 7, i32 7>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sums = call <802816 x float> @llvm.tensor.convolution(token %x.t, token %w.t, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <802816 x float> %sums, ptr %y
  ret void
}

define void @small_images(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %x.t = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 3, i32 66, i32 66>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w.t = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 64, i32 3, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sums = call <262144 x float> @llvm.tensor.convolution(token %x.t, token %w.t)
  store <262144 x float> %sums, ptr %y
  ret void
}
