; Convolutions: contractions on overlapping views of the input.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; The kernel is copied so that channels are dense; positions in it are summed in memory.
; CHECK-LABEL: define void @plain(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %lhs.buf = alloca [1152 x float], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %q, <2 x i32> <i32 128, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %transpose = call <1152 x float> @llvm.tensor.transpose.v1152f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v1152f32.v2i32(<1152 x float> %transpose, <2 x i32> <i32 9, i32 128>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %lhs.buf, token %columns, <2 x i32> <i32 0, i32 128>)
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 34
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 32
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %p, i64 %batch.offset
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %r, i64 %batch.offset.1
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.buf, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %matmul = call <256 x float> @llvm.tensor.matmul.v256f32(token %lhs, token %rhs)
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %lhs.buf, i64 128
; CHECK-NEXT:    %rhs.ptr.1 = getelementptr inbounds float, ptr %rhs.ptr, i64 1
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %matmul, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.1, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma = call <256 x float> @llvm.tensor.smma.v256f32(token %sum, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %lhs.ptr.1 = getelementptr inbounds float, ptr %lhs.buf, i64 256
; CHECK-NEXT:    %rhs.ptr.2 = getelementptr inbounds float, ptr %rhs.ptr, i64 2
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.1, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.2, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.1 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.1, token %lhs.2, token %rhs.2)
; CHECK-NEXT:    %lhs.ptr.2 = getelementptr inbounds float, ptr %lhs.buf, i64 384
; CHECK-NEXT:    %rhs.ptr.3 = getelementptr inbounds float, ptr %rhs.ptr, i64 34
; CHECK-NEXT:    %sum.2 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.1, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.2, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.3, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.2 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.2, token %lhs.3, token %rhs.3)
; CHECK-NEXT:    %lhs.ptr.3 = getelementptr inbounds float, ptr %lhs.buf, i64 512
; CHECK-NEXT:    %rhs.ptr.4 = getelementptr inbounds float, ptr %rhs.ptr, i64 35
; CHECK-NEXT:    %sum.3 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.2, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.3, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.4, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.3 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.3, token %lhs.4, token %rhs.4)
; CHECK-NEXT:    %lhs.ptr.4 = getelementptr inbounds float, ptr %lhs.buf, i64 640
; CHECK-NEXT:    %rhs.ptr.5 = getelementptr inbounds float, ptr %rhs.ptr, i64 36
; CHECK-NEXT:    %sum.4 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.3, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.5 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.4, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.5 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.5, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.4 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.4, token %lhs.5, token %rhs.5)
; CHECK-NEXT:    %lhs.ptr.5 = getelementptr inbounds float, ptr %lhs.buf, i64 768
; CHECK-NEXT:    %rhs.ptr.6 = getelementptr inbounds float, ptr %rhs.ptr, i64 68
; CHECK-NEXT:    %sum.5 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.4, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.6 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.5, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.6 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.6, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.5 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.5, token %lhs.6, token %rhs.6)
; CHECK-NEXT:    %lhs.ptr.6 = getelementptr inbounds float, ptr %lhs.buf, i64 896
; CHECK-NEXT:    %rhs.ptr.7 = getelementptr inbounds float, ptr %rhs.ptr, i64 69
; CHECK-NEXT:    %sum.6 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.5, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.7 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.6, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.7 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.7, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.6 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.6, token %lhs.7, token %rhs.7)
; CHECK-NEXT:    %lhs.ptr.7 = getelementptr inbounds float, ptr %lhs.buf, i64 1024
; CHECK-NEXT:    %rhs.ptr.8 = getelementptr inbounds float, ptr %rhs.ptr, i64 70
; CHECK-NEXT:    %sum.7 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.6, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.8 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.7, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.8 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.8, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.7 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.7, token %lhs.8, token %rhs.8)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.7, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 1024>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t = icmp slt i64 %batch.next, 32
; CHECK-NEXT:    br i1 %t, label %batch.loop, label %batch.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @plain(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 16, i32 34, i32 34>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 8, i32 16, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <8192 x float> @llvm.tensor.convolution(token %x, token %w)
  store <8192 x float> %y, ptr %r
  ret void
}

; A kernel of one position: a product for each image.
; CHECK-LABEL: define void @one_by_one(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 1024
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 256
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds i8, ptr %p, i64 %batch.offset
; CHECK-NEXT:    %out.ptr = getelementptr inbounds i32, ptr %r, i64 %batch.offset.1
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %q, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %rhs.ptr, <2 x i32> <i32 16, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    %matmul = call <256 x i32> @llvm.tensor.matmul.v256i32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v256i32.v2i32(<256 x i32> %matmul, <2 x i32> <i32 4, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t = icmp slt i64 %batch.next, 2
; CHECK-NEXT:    br i1 %t, label %batch.loop, label %batch.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @one_by_one(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %p, <4 x i32> <i32 2, i32 16, i32 8, i32 8>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(i8) %q, <4 x i32> <i32 4, i32 16, i32 1, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <512 x i32> @llvm.tensor.convolution(token %x, token %w)
  store <512 x i32> %y, ptr %r
  ret void
}

; Channels innermost: a row of the kernel and all channels are one dimension. 32 pixels by 8 filters fill registers best
; where filters are columns: the kernel is copied, blocks of the result are stored column by column.
; CHECK-LABEL: define void @channels_last(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %rhs.buf = alloca [1152 x float], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %q, <2 x i32> <i32 8, i32 144>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 144>)
; CHECK-NEXT:    %transpose = call <1152 x float> @llvm.tensor.transpose.v1152f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v1152f32.v2i32(<1152 x float> %transpose, <2 x i32> <i32 144, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %rhs.buf, token %columns, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 544
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 32
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %p, i64 %batch.offset
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %r, i64 %batch.offset.1
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 32, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.buf, <2 x i32> <i32 48, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %matmul = call <256 x float> @llvm.tensor.matmul.v256f32(token %lhs, token %rhs)
; CHECK-NEXT:    %lhs.ptr.1 = getelementptr inbounds float, ptr %lhs.ptr, i64 544
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %rhs.buf, i64 384
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %matmul, <2 x i32> <i32 32, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.1, <2 x i32> <i32 32, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 48, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %smma = call <256 x float> @llvm.tensor.smma.v256f32(token %sum, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %lhs.ptr.2 = getelementptr inbounds float, ptr %lhs.ptr, i64 1088
; CHECK-NEXT:    %rhs.ptr.1 = getelementptr inbounds float, ptr %rhs.buf, i64 768
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma, <2 x i32> <i32 32, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.2, <2 x i32> <i32 32, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.1, <2 x i32> <i32 48, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %smma.1 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.1, token %lhs.2, token %rhs.2)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.1, <2 x i32> <i32 32, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %transpose.1 = call <256 x float> @llvm.tensor.transpose.v256f32.v2i32(token %product, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %product.1 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %transpose.1, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product.1, <2 x i32> <i32 0, i32 1024>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t = icmp slt i64 %batch.next, 32
; CHECK-NEXT:    br i1 %t, label %batch.loop, label %batch.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @channels_last(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 34, i32 34, i32 16>, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 8, i32 3, i32 3, i32 16>, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <8192 x float> @llvm.tensor.convolution(token %x, token %w)
  store <8192 x float> %y, ptr %r
  ret void
}

; Holes in the input are zeros in a copy of it.
; CHECK-LABEL: define void @dilated_matrix(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %dilated.buf = alloca [63 x float], align 64
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %dilated.buf, i8 0, i64 252, i1 false)
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 5
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 18
; CHECK-NEXT:    %from = getelementptr inbounds float, ptr %p, i64 %i.offset
; CHECK-NEXT:    %to = getelementptr inbounds float, ptr %dilated.buf, i64 %i.offset.1
; CHECK-NEXT:    %column = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %from, <2 x i32> <i32 5, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %column, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t = icmp slt i64 %i.next, 4
; CHECK-NEXT:    br i1 %t, label %i.loop, label %i.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    %part = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %q, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %broadcast = call <49 x float> @llvm.tensor.broadcast.v49f32.v2i32.v2i32(token %part, <2 x i32> <i32 7, i32 7>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %dilated.buf, <2 x i32> <i32 7, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %tovector = call <49 x float> @llvm.tensor.tovector.v49f32(token %rows)
; CHECK-NEXT:    %product = fmul <49 x float> %broadcast, %tovector
; CHECK-NEXT:    %t.1 = getelementptr inbounds float, ptr %q, i64 1
; CHECK-NEXT:    %t.2 = getelementptr inbounds float, ptr %dilated.buf, i64 1
; CHECK-NEXT:    %part.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %t.1, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %broadcast.1 = call <49 x float> @llvm.tensor.broadcast.v49f32.v2i32.v2i32(token %part.1, <2 x i32> <i32 7, i32 7>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %t.2, <2 x i32> <i32 7, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %tovector.1 = call <49 x float> @llvm.tensor.tovector.v49f32(token %rows.1)
; CHECK-NEXT:    %sum = call <49 x float> @llvm.fmuladd.v49f32(<49 x float> %broadcast.1, <49 x float> %tovector.1, <49 x float> %product)
; CHECK-NEXT:    %t.3 = getelementptr inbounds float, ptr %q, i64 2
; CHECK-NEXT:    %t.4 = getelementptr inbounds float, ptr %dilated.buf, i64 2
; CHECK-NEXT:    %part.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %t.3, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %broadcast.2 = call <49 x float> @llvm.tensor.broadcast.v49f32.v2i32.v2i32(token %part.2, <2 x i32> <i32 7, i32 7>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %rows.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %t.4, <2 x i32> <i32 7, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %tovector.2 = call <49 x float> @llvm.tensor.tovector.v49f32(token %rows.2)
; CHECK-NEXT:    %sum.1 = call <49 x float> @llvm.fmuladd.v49f32(<49 x float> %broadcast.2, <49 x float> %tovector.2, <49 x float> %sum)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v49f32.v2i32(<49 x float> %sum.1, <2 x i32> <i32 7, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %r, token %block, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @dilated_matrix(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> <i32 1, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call <49 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 0>)
  store <49 x float> %y, ptr %r
  ret void
}

; Every second column: as rows of a block, pixels may be any distance apart, and nothing of the image is copied.
; CHECK-LABEL: define void @strided(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %rhs.heap = call noalias ptr @malloc(i64 24640)
; CHECK-NEXT:    %t.1 = ptrtoint ptr %rhs.heap to i64
; CHECK-NEXT:    %t.2 = sub i64 0, %t.1
; CHECK-NEXT:    %t.3 = and i64 %t.2, 63
; CHECK-NEXT:    %rhs.buf = getelementptr inbounds i8, ptr %rhs.heap, i64 %t.3
; CHECK-NEXT:    %t.4 = icmp eq ptr %rhs.heap, null
; CHECK-NEXT:    br i1 %t.4, label %out.of.memory, label %allocated
; CHECK-EMPTY:
; CHECK-NEXT:  out.of.memory:
; CHECK-NEXT:    call void @llvm.trap()
; CHECK-NEXT:    unreachable
; CHECK-EMPTY:
; CHECK-NEXT:  allocated:
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %q, <2 x i32> <i32 32, i32 192>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 192>)
; CHECK-NEXT:    %transpose = call <6144 x float> @llvm.tensor.transpose.v6144f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v6144f32.v2i32(<6144 x float> %transpose, <2 x i32> <i32 192, i32 32>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %rhs.buf, token %columns, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %allocated ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 58
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 28
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %p, i64 %batch.offset
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %r, i64 %batch.offset.1
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.buf, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %matmul = call <896 x float> @llvm.tensor.matmul.v896f32(token %lhs, token %rhs)
; CHECK-NEXT:    %lhs.ptr.1 = getelementptr inbounds float, ptr %lhs.ptr, i64 3364
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %rhs.buf, i64 96
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %matmul, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.1, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma = call <896 x float> @llvm.tensor.smma.v896f32(token %sum, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %lhs.ptr.2 = getelementptr inbounds float, ptr %lhs.ptr, i64 6728
; CHECK-NEXT:    %rhs.ptr.1 = getelementptr inbounds float, ptr %rhs.buf, i64 192
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.2, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.1, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.1 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.1, token %lhs.2, token %rhs.2)
; CHECK-NEXT:    %lhs.ptr.3 = getelementptr inbounds float, ptr %lhs.ptr, i64 10092
; CHECK-NEXT:    %rhs.ptr.2 = getelementptr inbounds float, ptr %rhs.buf, i64 288
; CHECK-NEXT:    %sum.2 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.1, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.3, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.2, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.2 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.2, token %lhs.3, token %rhs.3)
; CHECK-NEXT:    %lhs.ptr.4 = getelementptr inbounds float, ptr %lhs.ptr, i64 13456
; CHECK-NEXT:    %rhs.ptr.3 = getelementptr inbounds float, ptr %rhs.buf, i64 384
; CHECK-NEXT:    %sum.3 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.2, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.4, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.3, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.3 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.3, token %lhs.4, token %rhs.4)
; CHECK-NEXT:    %lhs.ptr.5 = getelementptr inbounds float, ptr %lhs.ptr, i64 16820
; CHECK-NEXT:    %rhs.ptr.4 = getelementptr inbounds float, ptr %rhs.buf, i64 480
; CHECK-NEXT:    %sum.4 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.3, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.5 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.5, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.5 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.4, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.4 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.4, token %lhs.5, token %rhs.5)
; CHECK-NEXT:    %lhs.ptr.6 = getelementptr inbounds float, ptr %lhs.ptr, i64 20184
; CHECK-NEXT:    %rhs.ptr.5 = getelementptr inbounds float, ptr %rhs.buf, i64 576
; CHECK-NEXT:    %sum.5 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.4, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.6 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.6, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.6 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.5, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.5 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.5, token %lhs.6, token %rhs.6)
; CHECK-NEXT:    %lhs.ptr.7 = getelementptr inbounds float, ptr %lhs.ptr, i64 23548
; CHECK-NEXT:    %rhs.ptr.6 = getelementptr inbounds float, ptr %rhs.buf, i64 672
; CHECK-NEXT:    %sum.6 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.5, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.7 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.7, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.7 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.6, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.6 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.6, token %lhs.7, token %rhs.7)
; CHECK-NEXT:    %lhs.ptr.8 = getelementptr inbounds float, ptr %lhs.ptr, i64 26912
; CHECK-NEXT:    %rhs.ptr.7 = getelementptr inbounds float, ptr %rhs.buf, i64 768
; CHECK-NEXT:    %sum.7 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.6, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.8 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.8, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.8 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.7, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.7 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.7, token %lhs.8, token %rhs.8)
; CHECK-NEXT:    %lhs.ptr.9 = getelementptr inbounds float, ptr %lhs.ptr, i64 30276
; CHECK-NEXT:    %rhs.ptr.8 = getelementptr inbounds float, ptr %rhs.buf, i64 864
; CHECK-NEXT:    %sum.8 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.7, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.9 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.9, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.9 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.8, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.8 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.8, token %lhs.9, token %rhs.9)
; CHECK-NEXT:    %lhs.ptr.10 = getelementptr inbounds float, ptr %lhs.ptr, i64 33640
; CHECK-NEXT:    %rhs.ptr.9 = getelementptr inbounds float, ptr %rhs.buf, i64 960
; CHECK-NEXT:    %sum.9 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.8, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.10 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.10, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.10 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.9, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.9 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.9, token %lhs.10, token %rhs.10)
; CHECK-NEXT:    %lhs.ptr.11 = getelementptr inbounds float, ptr %lhs.ptr, i64 37004
; CHECK-NEXT:    %rhs.ptr.10 = getelementptr inbounds float, ptr %rhs.buf, i64 1056
; CHECK-NEXT:    %sum.10 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.9, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.11 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.11, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.11 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.10, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.10 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.10, token %lhs.11, token %rhs.11)
; CHECK-NEXT:    %lhs.ptr.12 = getelementptr inbounds float, ptr %lhs.ptr, i64 40368
; CHECK-NEXT:    %rhs.ptr.11 = getelementptr inbounds float, ptr %rhs.buf, i64 1152
; CHECK-NEXT:    %sum.11 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.10, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.12 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.12, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.12 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.11, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.11 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.11, token %lhs.12, token %rhs.12)
; CHECK-NEXT:    %lhs.ptr.13 = getelementptr inbounds float, ptr %lhs.ptr, i64 43732
; CHECK-NEXT:    %rhs.ptr.12 = getelementptr inbounds float, ptr %rhs.buf, i64 1248
; CHECK-NEXT:    %sum.12 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.11, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.13 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.13, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.13 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.12, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.12 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.12, token %lhs.13, token %rhs.13)
; CHECK-NEXT:    %lhs.ptr.14 = getelementptr inbounds float, ptr %lhs.ptr, i64 47096
; CHECK-NEXT:    %rhs.ptr.13 = getelementptr inbounds float, ptr %rhs.buf, i64 1344
; CHECK-NEXT:    %sum.13 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.12, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.14 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.14, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.14 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.13, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.13 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.13, token %lhs.14, token %rhs.14)
; CHECK-NEXT:    %lhs.ptr.15 = getelementptr inbounds float, ptr %lhs.ptr, i64 50460
; CHECK-NEXT:    %rhs.ptr.14 = getelementptr inbounds float, ptr %rhs.buf, i64 1440
; CHECK-NEXT:    %sum.14 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.13, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.15 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.15, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.15 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.14, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.14 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.14, token %lhs.15, token %rhs.15)
; CHECK-NEXT:    %lhs.ptr.16 = getelementptr inbounds float, ptr %lhs.ptr, i64 53824
; CHECK-NEXT:    %rhs.ptr.15 = getelementptr inbounds float, ptr %rhs.buf, i64 1536
; CHECK-NEXT:    %sum.15 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.14, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.16 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.16, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.16 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.15, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.15 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.15, token %lhs.16, token %rhs.16)
; CHECK-NEXT:    %lhs.ptr.17 = getelementptr inbounds float, ptr %lhs.ptr, i64 57188
; CHECK-NEXT:    %rhs.ptr.16 = getelementptr inbounds float, ptr %rhs.buf, i64 1632
; CHECK-NEXT:    %sum.16 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.15, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.17 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.17, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.17 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.16, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.16 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.16, token %lhs.17, token %rhs.17)
; CHECK-NEXT:    %lhs.ptr.18 = getelementptr inbounds float, ptr %lhs.ptr, i64 60552
; CHECK-NEXT:    %rhs.ptr.17 = getelementptr inbounds float, ptr %rhs.buf, i64 1728
; CHECK-NEXT:    %sum.17 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.16, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.18 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.18, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.18 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.17, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.17 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.17, token %lhs.18, token %rhs.18)
; CHECK-NEXT:    %lhs.ptr.19 = getelementptr inbounds float, ptr %lhs.ptr, i64 63916
; CHECK-NEXT:    %rhs.ptr.18 = getelementptr inbounds float, ptr %rhs.buf, i64 1824
; CHECK-NEXT:    %sum.18 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.17, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.19 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.19, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.19 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.18, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.18 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.18, token %lhs.19, token %rhs.19)
; CHECK-NEXT:    %lhs.ptr.20 = getelementptr inbounds float, ptr %lhs.ptr, i64 67280
; CHECK-NEXT:    %rhs.ptr.19 = getelementptr inbounds float, ptr %rhs.buf, i64 1920
; CHECK-NEXT:    %sum.19 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.18, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.20 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.20, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.20 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.19, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.19 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.19, token %lhs.20, token %rhs.20)
; CHECK-NEXT:    %lhs.ptr.21 = getelementptr inbounds float, ptr %lhs.ptr, i64 70644
; CHECK-NEXT:    %rhs.ptr.20 = getelementptr inbounds float, ptr %rhs.buf, i64 2016
; CHECK-NEXT:    %sum.20 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.19, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.21 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.21, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.21 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.20, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.20 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.20, token %lhs.21, token %rhs.21)
; CHECK-NEXT:    %lhs.ptr.22 = getelementptr inbounds float, ptr %lhs.ptr, i64 74008
; CHECK-NEXT:    %rhs.ptr.21 = getelementptr inbounds float, ptr %rhs.buf, i64 2112
; CHECK-NEXT:    %sum.21 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.20, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.22 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.22, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.22 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.21, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.21 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.21, token %lhs.22, token %rhs.22)
; CHECK-NEXT:    %lhs.ptr.23 = getelementptr inbounds float, ptr %lhs.ptr, i64 77372
; CHECK-NEXT:    %rhs.ptr.22 = getelementptr inbounds float, ptr %rhs.buf, i64 2208
; CHECK-NEXT:    %sum.22 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.21, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.23 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.23, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.23 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.22, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.22 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.22, token %lhs.23, token %rhs.23)
; CHECK-NEXT:    %lhs.ptr.24 = getelementptr inbounds float, ptr %lhs.ptr, i64 80736
; CHECK-NEXT:    %rhs.ptr.23 = getelementptr inbounds float, ptr %rhs.buf, i64 2304
; CHECK-NEXT:    %sum.23 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.22, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.24 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.24, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.24 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.23, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.23 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.23, token %lhs.24, token %rhs.24)
; CHECK-NEXT:    %lhs.ptr.25 = getelementptr inbounds float, ptr %lhs.ptr, i64 84100
; CHECK-NEXT:    %rhs.ptr.24 = getelementptr inbounds float, ptr %rhs.buf, i64 2400
; CHECK-NEXT:    %sum.24 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.23, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.25 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.25, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.25 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.24, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.24 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.24, token %lhs.25, token %rhs.25)
; CHECK-NEXT:    %lhs.ptr.26 = getelementptr inbounds float, ptr %lhs.ptr, i64 87464
; CHECK-NEXT:    %rhs.ptr.25 = getelementptr inbounds float, ptr %rhs.buf, i64 2496
; CHECK-NEXT:    %sum.25 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.24, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.26 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.26, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.26 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.25, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.25 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.25, token %lhs.26, token %rhs.26)
; CHECK-NEXT:    %lhs.ptr.27 = getelementptr inbounds float, ptr %lhs.ptr, i64 90828
; CHECK-NEXT:    %rhs.ptr.26 = getelementptr inbounds float, ptr %rhs.buf, i64 2592
; CHECK-NEXT:    %sum.26 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.25, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.27 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.27, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.27 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.26, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.26 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.26, token %lhs.27, token %rhs.27)
; CHECK-NEXT:    %lhs.ptr.28 = getelementptr inbounds float, ptr %lhs.ptr, i64 94192
; CHECK-NEXT:    %rhs.ptr.27 = getelementptr inbounds float, ptr %rhs.buf, i64 2688
; CHECK-NEXT:    %sum.27 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.26, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.28 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.28, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.28 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.27, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.27 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.27, token %lhs.28, token %rhs.28)
; CHECK-NEXT:    %lhs.ptr.29 = getelementptr inbounds float, ptr %lhs.ptr, i64 97556
; CHECK-NEXT:    %rhs.ptr.28 = getelementptr inbounds float, ptr %rhs.buf, i64 2784
; CHECK-NEXT:    %sum.28 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.27, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.29 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.29, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.29 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.28, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.28 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.28, token %lhs.29, token %rhs.29)
; CHECK-NEXT:    %lhs.ptr.30 = getelementptr inbounds float, ptr %lhs.ptr, i64 100920
; CHECK-NEXT:    %rhs.ptr.29 = getelementptr inbounds float, ptr %rhs.buf, i64 2880
; CHECK-NEXT:    %sum.29 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.28, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.30 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.30, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.30 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.29, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.29 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.29, token %lhs.30, token %rhs.30)
; CHECK-NEXT:    %lhs.ptr.31 = getelementptr inbounds float, ptr %lhs.ptr, i64 104284
; CHECK-NEXT:    %rhs.ptr.30 = getelementptr inbounds float, ptr %rhs.buf, i64 2976
; CHECK-NEXT:    %sum.30 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.29, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.31 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.31, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.31 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.30, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.30 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.30, token %lhs.31, token %rhs.31)
; CHECK-NEXT:    %lhs.ptr.32 = getelementptr inbounds float, ptr %lhs.ptr, i64 107648
; CHECK-NEXT:    %rhs.ptr.31 = getelementptr inbounds float, ptr %rhs.buf, i64 3072
; CHECK-NEXT:    %sum.31 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.30, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.32 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.32, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.32 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.31, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.31 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.31, token %lhs.32, token %rhs.32)
; CHECK-NEXT:    %lhs.ptr.33 = getelementptr inbounds float, ptr %lhs.ptr, i64 111012
; CHECK-NEXT:    %rhs.ptr.32 = getelementptr inbounds float, ptr %rhs.buf, i64 3168
; CHECK-NEXT:    %sum.32 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.31, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.33 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.33, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.33 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.32, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.32 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.32, token %lhs.33, token %rhs.33)
; CHECK-NEXT:    %lhs.ptr.34 = getelementptr inbounds float, ptr %lhs.ptr, i64 114376
; CHECK-NEXT:    %rhs.ptr.33 = getelementptr inbounds float, ptr %rhs.buf, i64 3264
; CHECK-NEXT:    %sum.33 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.32, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.34 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.34, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.34 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.33, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.33 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.33, token %lhs.34, token %rhs.34)
; CHECK-NEXT:    %lhs.ptr.35 = getelementptr inbounds float, ptr %lhs.ptr, i64 117740
; CHECK-NEXT:    %rhs.ptr.34 = getelementptr inbounds float, ptr %rhs.buf, i64 3360
; CHECK-NEXT:    %sum.34 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.33, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.35 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.35, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.35 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.34, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.34 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.34, token %lhs.35, token %rhs.35)
; CHECK-NEXT:    %lhs.ptr.36 = getelementptr inbounds float, ptr %lhs.ptr, i64 121104
; CHECK-NEXT:    %rhs.ptr.35 = getelementptr inbounds float, ptr %rhs.buf, i64 3456
; CHECK-NEXT:    %sum.35 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.34, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.36 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.36, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.36 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.35, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.35 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.35, token %lhs.36, token %rhs.36)
; CHECK-NEXT:    %lhs.ptr.37 = getelementptr inbounds float, ptr %lhs.ptr, i64 124468
; CHECK-NEXT:    %rhs.ptr.36 = getelementptr inbounds float, ptr %rhs.buf, i64 3552
; CHECK-NEXT:    %sum.36 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.35, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.37 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.37, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.37 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.36, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.36 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.36, token %lhs.37, token %rhs.37)
; CHECK-NEXT:    %lhs.ptr.38 = getelementptr inbounds float, ptr %lhs.ptr, i64 127832
; CHECK-NEXT:    %rhs.ptr.37 = getelementptr inbounds float, ptr %rhs.buf, i64 3648
; CHECK-NEXT:    %sum.37 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.36, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.38 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.38, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.38 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.37, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.37 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.37, token %lhs.38, token %rhs.38)
; CHECK-NEXT:    %lhs.ptr.39 = getelementptr inbounds float, ptr %lhs.ptr, i64 131196
; CHECK-NEXT:    %rhs.ptr.38 = getelementptr inbounds float, ptr %rhs.buf, i64 3744
; CHECK-NEXT:    %sum.38 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.37, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.39 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.39, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.39 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.38, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.38 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.38, token %lhs.39, token %rhs.39)
; CHECK-NEXT:    %lhs.ptr.40 = getelementptr inbounds float, ptr %lhs.ptr, i64 134560
; CHECK-NEXT:    %rhs.ptr.39 = getelementptr inbounds float, ptr %rhs.buf, i64 3840
; CHECK-NEXT:    %sum.39 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.38, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.40 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.40, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.40 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.39, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.39 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.39, token %lhs.40, token %rhs.40)
; CHECK-NEXT:    %lhs.ptr.41 = getelementptr inbounds float, ptr %lhs.ptr, i64 137924
; CHECK-NEXT:    %rhs.ptr.40 = getelementptr inbounds float, ptr %rhs.buf, i64 3936
; CHECK-NEXT:    %sum.40 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.39, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.41 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.41, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.41 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.40, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.40 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.40, token %lhs.41, token %rhs.41)
; CHECK-NEXT:    %lhs.ptr.42 = getelementptr inbounds float, ptr %lhs.ptr, i64 141288
; CHECK-NEXT:    %rhs.ptr.41 = getelementptr inbounds float, ptr %rhs.buf, i64 4032
; CHECK-NEXT:    %sum.41 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.40, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.42 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.42, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.42 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.41, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.41 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.41, token %lhs.42, token %rhs.42)
; CHECK-NEXT:    %lhs.ptr.43 = getelementptr inbounds float, ptr %lhs.ptr, i64 144652
; CHECK-NEXT:    %rhs.ptr.42 = getelementptr inbounds float, ptr %rhs.buf, i64 4128
; CHECK-NEXT:    %sum.42 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.41, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.43 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.43, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.43 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.42, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.42 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.42, token %lhs.43, token %rhs.43)
; CHECK-NEXT:    %lhs.ptr.44 = getelementptr inbounds float, ptr %lhs.ptr, i64 148016
; CHECK-NEXT:    %rhs.ptr.43 = getelementptr inbounds float, ptr %rhs.buf, i64 4224
; CHECK-NEXT:    %sum.43 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.42, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.44 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.44, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.44 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.43, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.43 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.43, token %lhs.44, token %rhs.44)
; CHECK-NEXT:    %lhs.ptr.45 = getelementptr inbounds float, ptr %lhs.ptr, i64 151380
; CHECK-NEXT:    %rhs.ptr.44 = getelementptr inbounds float, ptr %rhs.buf, i64 4320
; CHECK-NEXT:    %sum.44 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.43, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.45 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.45, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.45 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.44, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.44 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.44, token %lhs.45, token %rhs.45)
; CHECK-NEXT:    %lhs.ptr.46 = getelementptr inbounds float, ptr %lhs.ptr, i64 154744
; CHECK-NEXT:    %rhs.ptr.45 = getelementptr inbounds float, ptr %rhs.buf, i64 4416
; CHECK-NEXT:    %sum.45 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.44, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.46 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.46, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.46 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.45, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.45 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.45, token %lhs.46, token %rhs.46)
; CHECK-NEXT:    %lhs.ptr.47 = getelementptr inbounds float, ptr %lhs.ptr, i64 158108
; CHECK-NEXT:    %rhs.ptr.46 = getelementptr inbounds float, ptr %rhs.buf, i64 4512
; CHECK-NEXT:    %sum.46 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.45, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.47 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.47, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.47 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.46, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.46 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.46, token %lhs.47, token %rhs.47)
; CHECK-NEXT:    %lhs.ptr.48 = getelementptr inbounds float, ptr %lhs.ptr, i64 161472
; CHECK-NEXT:    %rhs.ptr.47 = getelementptr inbounds float, ptr %rhs.buf, i64 4608
; CHECK-NEXT:    %sum.47 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.46, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.48 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.48, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.48 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.47, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.47 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.47, token %lhs.48, token %rhs.48)
; CHECK-NEXT:    %lhs.ptr.49 = getelementptr inbounds float, ptr %lhs.ptr, i64 164836
; CHECK-NEXT:    %rhs.ptr.48 = getelementptr inbounds float, ptr %rhs.buf, i64 4704
; CHECK-NEXT:    %sum.48 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.47, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.49 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.49, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.49 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.48, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.48 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.48, token %lhs.49, token %rhs.49)
; CHECK-NEXT:    %lhs.ptr.50 = getelementptr inbounds float, ptr %lhs.ptr, i64 168200
; CHECK-NEXT:    %rhs.ptr.49 = getelementptr inbounds float, ptr %rhs.buf, i64 4800
; CHECK-NEXT:    %sum.49 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.48, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.50 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.50, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.50 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.49, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.49 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.49, token %lhs.50, token %rhs.50)
; CHECK-NEXT:    %lhs.ptr.51 = getelementptr inbounds float, ptr %lhs.ptr, i64 171564
; CHECK-NEXT:    %rhs.ptr.50 = getelementptr inbounds float, ptr %rhs.buf, i64 4896
; CHECK-NEXT:    %sum.50 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.49, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.51 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.51, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.51 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.50, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.50 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.50, token %lhs.51, token %rhs.51)
; CHECK-NEXT:    %lhs.ptr.52 = getelementptr inbounds float, ptr %lhs.ptr, i64 174928
; CHECK-NEXT:    %rhs.ptr.51 = getelementptr inbounds float, ptr %rhs.buf, i64 4992
; CHECK-NEXT:    %sum.51 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.50, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.52 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.52, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.52 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.51, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.51 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.51, token %lhs.52, token %rhs.52)
; CHECK-NEXT:    %lhs.ptr.53 = getelementptr inbounds float, ptr %lhs.ptr, i64 178292
; CHECK-NEXT:    %rhs.ptr.52 = getelementptr inbounds float, ptr %rhs.buf, i64 5088
; CHECK-NEXT:    %sum.52 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.51, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.53 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.53, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.53 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.52, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.52 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.52, token %lhs.53, token %rhs.53)
; CHECK-NEXT:    %lhs.ptr.54 = getelementptr inbounds float, ptr %lhs.ptr, i64 181656
; CHECK-NEXT:    %rhs.ptr.53 = getelementptr inbounds float, ptr %rhs.buf, i64 5184
; CHECK-NEXT:    %sum.53 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.52, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.54 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.54, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.54 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.53, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.53 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.53, token %lhs.54, token %rhs.54)
; CHECK-NEXT:    %lhs.ptr.55 = getelementptr inbounds float, ptr %lhs.ptr, i64 185020
; CHECK-NEXT:    %rhs.ptr.54 = getelementptr inbounds float, ptr %rhs.buf, i64 5280
; CHECK-NEXT:    %sum.54 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.53, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.55 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.55, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.55 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.54, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.54 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.54, token %lhs.55, token %rhs.55)
; CHECK-NEXT:    %lhs.ptr.56 = getelementptr inbounds float, ptr %lhs.ptr, i64 188384
; CHECK-NEXT:    %rhs.ptr.55 = getelementptr inbounds float, ptr %rhs.buf, i64 5376
; CHECK-NEXT:    %sum.55 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.54, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.56 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.56, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.56 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.55, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.55 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.55, token %lhs.56, token %rhs.56)
; CHECK-NEXT:    %lhs.ptr.57 = getelementptr inbounds float, ptr %lhs.ptr, i64 191748
; CHECK-NEXT:    %rhs.ptr.56 = getelementptr inbounds float, ptr %rhs.buf, i64 5472
; CHECK-NEXT:    %sum.56 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.55, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.57 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.57, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.57 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.56, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.56 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.56, token %lhs.57, token %rhs.57)
; CHECK-NEXT:    %lhs.ptr.58 = getelementptr inbounds float, ptr %lhs.ptr, i64 195112
; CHECK-NEXT:    %rhs.ptr.57 = getelementptr inbounds float, ptr %rhs.buf, i64 5568
; CHECK-NEXT:    %sum.57 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.56, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.58 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.58, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.58 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.57, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.57 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.57, token %lhs.58, token %rhs.58)
; CHECK-NEXT:    %lhs.ptr.59 = getelementptr inbounds float, ptr %lhs.ptr, i64 198476
; CHECK-NEXT:    %rhs.ptr.58 = getelementptr inbounds float, ptr %rhs.buf, i64 5664
; CHECK-NEXT:    %sum.58 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.57, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.59 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.59, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.59 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.58, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.58 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.58, token %lhs.59, token %rhs.59)
; CHECK-NEXT:    %lhs.ptr.60 = getelementptr inbounds float, ptr %lhs.ptr, i64 201840
; CHECK-NEXT:    %rhs.ptr.59 = getelementptr inbounds float, ptr %rhs.buf, i64 5760
; CHECK-NEXT:    %sum.59 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.58, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.60 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.60, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.60 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.59, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.59 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.59, token %lhs.60, token %rhs.60)
; CHECK-NEXT:    %lhs.ptr.61 = getelementptr inbounds float, ptr %lhs.ptr, i64 205204
; CHECK-NEXT:    %rhs.ptr.60 = getelementptr inbounds float, ptr %rhs.buf, i64 5856
; CHECK-NEXT:    %sum.60 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.59, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.61 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.61, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.61 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.60, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.60 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.60, token %lhs.61, token %rhs.61)
; CHECK-NEXT:    %lhs.ptr.62 = getelementptr inbounds float, ptr %lhs.ptr, i64 208568
; CHECK-NEXT:    %rhs.ptr.61 = getelementptr inbounds float, ptr %rhs.buf, i64 5952
; CHECK-NEXT:    %sum.61 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.60, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.62 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.62, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.62 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.61, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.61 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.61, token %lhs.62, token %rhs.62)
; CHECK-NEXT:    %lhs.ptr.63 = getelementptr inbounds float, ptr %lhs.ptr, i64 211932
; CHECK-NEXT:    %rhs.ptr.62 = getelementptr inbounds float, ptr %rhs.buf, i64 6048
; CHECK-NEXT:    %sum.62 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.61, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.63 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.63, <2 x i32> <i32 28, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %rhs.63 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.62, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %smma.62 = call <896 x float> @llvm.tensor.smma.v896f32(token %sum.62, token %lhs.63, token %rhs.63)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %smma.62, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %transpose.1 = call <896 x float> @llvm.tensor.transpose.v896f32.v2i32(token %product, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %product.1 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %transpose.1, <2 x i32> <i32 32, i32 28>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product.1, <2 x i32> <i32 0, i32 1624>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t = icmp slt i64 %batch.next, 58
; CHECK-NEXT:    br i1 %t, label %batch.loop, label %batch.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    call void @free(ptr %rhs.heap)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @strided(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 64, i32 58, i32 58>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 32, i32 64, i32 1, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <51968 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 1, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <51968 x float> %y, ptr %r
  ret void
}

; Each channel by itself: no matrices, but sums of a few products, element by element, rounded once.
; CHECK-LABEL: define void @depthwise(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    br label %block.loop
; CHECK-EMPTY:
; CHECK-NEXT:  block.loop:
; CHECK-NEXT:    %block = phi i64 [ 0, %0 ], [ %block.next, %block.loop ]
; CHECK-NEXT:    %block.offset = mul i64 %block, 2
; CHECK-NEXT:    %block.offset.1 = mul i64 %block, 54
; CHECK-NEXT:    %block.offset.2 = mul i64 %block, 48
; CHECK-NEXT:    %out.ptr = getelementptr inbounds bfloat, ptr %r, i64 %block.offset.2
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds bfloat, ptr %q, i64 %block.offset
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds bfloat, ptr %p, i64 %block.offset.1
; CHECK-NEXT:    %part = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %lhs.ptr, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %broadcast = call <48 x bfloat> @llvm.tensor.broadcast.v48bf16.v2i32.v2i32(token %part, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %t = fpext <48 x bfloat> %broadcast to <48 x float>
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %rhs.ptr, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %tovector = call <48 x bfloat> @llvm.tensor.tovector.v48bf16(token %rows)
; CHECK-NEXT:    %t.1 = fpext <48 x bfloat> %tovector to <48 x float>
; CHECK-NEXT:    %product = fmul <48 x float> %t, %t.1
; CHECK-NEXT:    %t.2 = getelementptr inbounds bfloat, ptr %lhs.ptr, i64 1
; CHECK-NEXT:    %t.3 = getelementptr inbounds bfloat, ptr %rhs.ptr, i64 1
; CHECK-NEXT:    %part.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %t.2, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %broadcast.1 = call <48 x bfloat> @llvm.tensor.broadcast.v48bf16.v2i32.v2i32(token %part.1, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %t.4 = fpext <48 x bfloat> %broadcast.1 to <48 x float>
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %t.3, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %tovector.1 = call <48 x bfloat> @llvm.tensor.tovector.v48bf16(token %rows.1)
; CHECK-NEXT:    %t.5 = fpext <48 x bfloat> %tovector.1 to <48 x float>
; CHECK-NEXT:    %sum = call <48 x float> @llvm.fmuladd.v48f32(<48 x float> %t.4, <48 x float> %t.5, <48 x float> %product)
; CHECK-NEXT:    %t.6 = fptrunc <48 x float> %sum to <48 x bfloat>
; CHECK-NEXT:    %block.1 = call token @llvm.tensor.typeinfo.v48bf16.v2i32(<48 x bfloat> %t.6, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %block.1, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %block.next = add i64 %block, 1
; CHECK-NEXT:    %t.7 = icmp slt i64 %block.next, 4
; CHECK-NEXT:    br i1 %t.7, label %block.loop, label %block.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  block.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @depthwise(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <4 x i32> <i32 1, i32 4, i32 6, i32 9>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <4 x i32> <i32 4, i32 1, i32 1, i32 2>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <192 x bfloat> @llvm.tensor.convolution(token %x, token %w)
  store <192 x bfloat> %y, ptr %r
  ret void
}
