; Convolutions of few filters on a matrix unit: tiles multiply blocks that vectors would not multiply faster, packing of
; operands included. Blocks on vectors are estimated with the cost of vectors, such as that of each loop over K.
;
; 8 filters of 5 x 5, stride 2, on 64 x 64: bytes of 8 channels have 40 sums of 5, which hardly fill tiles, those of 16
; channels 5 sums of 80. Dot products of bfloat are half as fast as multiply-adds on processors with AMX: 16 channels are
; converted to float, 32 fill tiles.
;
; RUN: tlx-lower %s -o %t.o.ll --target=amx --remarks=- | FileCheck %s

; CHECK: x, because it would be converted for each product
; CHECK: x, because the matrix unit reads channels in groups
; CHECK: matmul 8x32x40*5 i8 -> i32: dot product
; CHECK: matmul 8x32x5*80 i8 -> i32: matrix unit
; CHECK: matmul 8x32x25*16 float: multiply-add
; CHECK: matmul 8x32x25*32 bfloat -> float: matrix unit

define void @bytes_of_8_channels(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %x.t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <4 x i32> <i32 1, i32 8, i32 68, i32 68>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w.t = call token @llvm.tensor.load(ptr elementtype(i8) %w, <4 x i32> <i32 8, i32 8, i32 5, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sums = call <8192 x i32> @llvm.tensor.convolution(token %x.t, token %w.t, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <8192 x i32> %sums, ptr %y
  ret void
}

define void @bytes_of_16_channels(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %x.t = call token @llvm.tensor.load(ptr elementtype(i8) %x, <4 x i32> <i32 1, i32 16, i32 68, i32 68>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w.t = call token @llvm.tensor.load(ptr elementtype(i8) %w, <4 x i32> <i32 8, i32 16, i32 5, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sums = call <8192 x i32> @llvm.tensor.convolution(token %x.t, token %w.t, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <8192 x i32> %sums, ptr %y
  ret void
}

define void @bfloats_of_16_channels(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %x.t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 16, i32 68, i32 68>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w.t = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 8, i32 16, i32 5, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sums = call <8192 x float> @llvm.tensor.convolution(token %x.t, token %w.t, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <8192 x float> %sums, ptr %y
  ret void
}

define void @bfloats_of_32_channels(ptr noalias %y, ptr noalias %x, ptr noalias %w) {
  %x.t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <4 x i32> <i32 1, i32 32, i32 68, i32 68>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w.t = call token @llvm.tensor.load(ptr elementtype(bfloat) %w, <4 x i32> <i32 8, i32 32, i32 5, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %sums = call <8192 x float> @llvm.tensor.convolution(token %x.t, token %w.t, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <8192 x float> %sums, ptr %y
  ret void
}
