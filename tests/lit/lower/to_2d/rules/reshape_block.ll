; Blocked storage: strided copies of full blocks and of remainders, zeros in the rest of the last block.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; Columns in blocks of four: one is full, one has one column of data.
; CHECK-LABEL: define void @columns(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %rows, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %part = getelementptr inbounds float, ptr %x, i64 4
; CHECK-NEXT:    %part.1 = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT:    %column = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %part, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %part.1, token %column, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %part.2 = getelementptr inbounds float, ptr %c, i64 5
; CHECK-NEXT:    %scalar = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> <float 0x0000000000000000>, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %broadcast = call <9 x float> @llvm.tensor.broadcast.v9f32.v2i32.v2i32(token %scalar, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v9f32.v2i32(<9 x float> %broadcast, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %part.2, token %block, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @columns(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <24 x float> @llvm.tensor.reshape.block(token %t, <1 x i32> <i32 1>, <1 x i32> <i32 4>)
  store <24 x float> %v, ptr %c
  ret void
}

; Interleaved pairs of rows, as instructions on pairs read them: one transposing copy for each pair.
; CHECK-LABEL: define void @pairs(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 32
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 32
; CHECK-NEXT:    %from = getelementptr inbounds bfloat, ptr %x, i64 %i.offset
; CHECK-NEXT:    %to = getelementptr inbounds bfloat, ptr %c, i64 %i.offset.1
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %from, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %transpose = call <32 x bfloat> @llvm.tensor.transpose.v32bf16.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v32bf16.v2i32(<32 x bfloat> %transpose, <2 x i32> <i32 16, i32 2>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %columns, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %i.next, 2
; CHECK-NEXT:    br i1 %t.1, label %i.loop, label %i.end
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @pairs(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <64 x bfloat> @llvm.tensor.reshape.block(token %t, <1 x i32> <i32 0>, <1 x i32> <i32 2>)
  store <64 x bfloat> %v, ptr %c
  ret void
}

; A dimension that is split twice: 10 is one block of 2 x 4 and a remainder of 2, in the first of two further fours.
; CHECK-LABEL: define void @twice(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %x, i64 32, i1 false)
; CHECK-NEXT:    %part = getelementptr inbounds i32, ptr %x, i64 8
; CHECK-NEXT:    %part.1 = getelementptr inbounds i32, ptr %c, i64 8
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %part.1, ptr %part, i64 8, i1 false)
; CHECK-NEXT:    %part.2 = getelementptr inbounds i32, ptr %c, i64 10
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %part.2, i8 0, i64 8, i1 false)
; CHECK-NEXT:    %part.3 = getelementptr inbounds i32, ptr %c, i64 12
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %part.3, i8 0, i64 16, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @twice(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(i32) %x, <1 x i32> <i32 10>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <16 x i32> @llvm.tensor.reshape.block(token %t, <2 x i32> zeroinitializer, <2 x i32> <i32 2, i32 4>)
  store <16 x i32> %v, ptr %c
  ret void
}
