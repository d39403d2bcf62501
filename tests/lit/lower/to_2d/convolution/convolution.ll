; Convolutions: contractions on overlapping views of the input.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; The kernel is copied so that channels are dense; its positions are summed in memory.
; CHECK-LABEL: define void @plain(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %w.buf = alloca [1152 x float], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %q, <2 x i32> <i32 128, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %transpose = call <1152 x float> @llvm.tensor.transpose.v1152f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v1152f32.v2i32(<1152 x float> %transpose, <2 x i32> <i32 9, i32 128>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %w.buf, token %columns, <2 x i32> <i32 0, i32 128>)
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 34
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 32
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %p, i64 %batch.offset
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %r, i64 %batch.offset.1
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %w.buf, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %matmul = call <256 x float> @llvm.tensor.matmul.v256f32(token %lhs, token %rhs)
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %w.buf, i64 128
; CHECK-NEXT:    %rhs.ptr.1 = getelementptr inbounds float, ptr %rhs.ptr, i64 1
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %matmul, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.1, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma = call <256 x float> @llvm.tensor.smma.v256f32(token %sum, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %lhs.ptr.1 = getelementptr inbounds float, ptr %w.buf, i64 256
; CHECK-NEXT:    %rhs.ptr.2 = getelementptr inbounds float, ptr %rhs.ptr, i64 2
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.1, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.2, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.1 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.1, token %lhs.2, token %rhs.2)
; CHECK-NEXT:    %lhs.ptr.2 = getelementptr inbounds float, ptr %w.buf, i64 384
; CHECK-NEXT:    %rhs.ptr.3 = getelementptr inbounds float, ptr %rhs.ptr, i64 34
; CHECK-NEXT:    %sum.2 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.1, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.2, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.3, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.2 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.2, token %lhs.3, token %rhs.3)
; CHECK-NEXT:    %lhs.ptr.3 = getelementptr inbounds float, ptr %w.buf, i64 512
; CHECK-NEXT:    %rhs.ptr.4 = getelementptr inbounds float, ptr %rhs.ptr, i64 35
; CHECK-NEXT:    %sum.3 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.2, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.3, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.4, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.3 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.3, token %lhs.4, token %rhs.4)
; CHECK-NEXT:    %lhs.ptr.4 = getelementptr inbounds float, ptr %w.buf, i64 640
; CHECK-NEXT:    %rhs.ptr.5 = getelementptr inbounds float, ptr %rhs.ptr, i64 36
; CHECK-NEXT:    %sum.4 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.3, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.5 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.4, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.5 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.5, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.4 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.4, token %lhs.5, token %rhs.5)
; CHECK-NEXT:    %lhs.ptr.5 = getelementptr inbounds float, ptr %w.buf, i64 768
; CHECK-NEXT:    %rhs.ptr.6 = getelementptr inbounds float, ptr %rhs.ptr, i64 68
; CHECK-NEXT:    %sum.5 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.4, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.6 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.5, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.6 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.6, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.5 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.5, token %lhs.6, token %rhs.6)
; CHECK-NEXT:    %lhs.ptr.6 = getelementptr inbounds float, ptr %w.buf, i64 896
; CHECK-NEXT:    %rhs.ptr.7 = getelementptr inbounds float, ptr %rhs.ptr, i64 69
; CHECK-NEXT:    %sum.6 = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %smma.5, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.7 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.6, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.7 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr.7, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1156>)
; CHECK-NEXT:    %smma.6 = call <256 x float> @llvm.tensor.smma.v256f32(token %sum.6, token %lhs.7, token %rhs.7)
; CHECK-NEXT:    %lhs.ptr.7 = getelementptr inbounds float, ptr %w.buf, i64 1024
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

; A 1 x 1 kernel: a product for each image.
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
; CHECK-NEXT:    %w.buf = alloca [1152 x float], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %q, <2 x i32> <i32 8, i32 144>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 144>)
; CHECK-NEXT:    %transpose = call <1152 x float> @llvm.tensor.transpose.v1152f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v1152f32.v2i32(<1152 x float> %transpose, <2 x i32> <i32 144, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %w.buf, token %columns, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 544
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 32
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %p, i64 %batch.offset
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %r, i64 %batch.offset.1
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 32, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %w.buf, <2 x i32> <i32 48, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %matmul = call <256 x float> @llvm.tensor.matmul.v256f32(token %lhs, token %rhs)
; CHECK-NEXT:    %lhs.ptr.1 = getelementptr inbounds float, ptr %lhs.ptr, i64 544
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %w.buf, i64 384
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %matmul, <2 x i32> <i32 32, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr.1, <2 x i32> <i32 32, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 48, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    %smma = call <256 x float> @llvm.tensor.smma.v256f32(token %sum, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %lhs.ptr.2 = getelementptr inbounds float, ptr %lhs.ptr, i64 1088
; CHECK-NEXT:    %rhs.ptr.1 = getelementptr inbounds float, ptr %w.buf, i64 768
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

; A dilated input is copied with zeros between its elements.
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

; Stride 2: the image is copied with channels innermost; pixels are rows of a block, which may have any distance.
; CHECK-LABEL: define void @strided(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %last.heap = call noalias ptr @malloc(i64 861248)
; CHECK-NEXT:    %t.2 = ptrtoint ptr %last.heap to i64
; CHECK-NEXT:    %t.3 = sub i64 0, %t.2
; CHECK-NEXT:    %t.4 = and i64 %t.3, 63
; CHECK-NEXT:    %last.buf = getelementptr inbounds i8, ptr %last.heap, i64 %t.4
; CHECK-NEXT:    %w.heap = call noalias ptr @malloc(i64 24640)
; CHECK-NEXT:    %t.5 = ptrtoint ptr %w.heap to i64
; CHECK-NEXT:    %t.6 = sub i64 0, %t.5
; CHECK-NEXT:    %t.7 = and i64 %t.6, 63
; CHECK-NEXT:    %w.buf = getelementptr inbounds i8, ptr %w.heap, i64 %t.7
; CHECK-NEXT:    %t.8 = icmp eq ptr %last.heap, null
; CHECK-NEXT:    %t.9 = icmp eq ptr %w.heap, null
; CHECK-NEXT:    %t.10 = or i1 %t.8, %t.9
; CHECK-NEXT:    br i1 %t.10, label %out.of.memory, label %allocated
; CHECK-EMPTY:
; CHECK-NEXT:  out.of.memory:
; CHECK-NEXT:    call void @llvm.trap()
; CHECK-NEXT:    unreachable
; CHECK-EMPTY:
; CHECK-NEXT:  allocated:
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %p, <2 x i32> <i32 64, i32 3364>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3364>)
; CHECK-NEXT:    %transpose = call <215296 x float> @llvm.tensor.transpose.v215296f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v215296f32.v2i32(<215296 x float> %transpose, <2 x i32> <i32 3364, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %last.buf, token %columns, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %allocated ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 3
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 32
; CHECK-NEXT:    %from = getelementptr inbounds float, ptr %q, i64 %i.offset
; CHECK-NEXT:    %to = getelementptr inbounds float, ptr %w.buf, i64 %i.offset.1
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %from, <2 x i32> <i32 32, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 192>)
; CHECK-NEXT:    %transpose.1 = call <96 x float> @llvm.tensor.transpose.v96f32.v2i32(token %rows.1, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns.1 = call token @llvm.tensor.typeinfo.v96f32.v2i32(<96 x float> %transpose.1, <2 x i32> <i32 3, i32 32>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %columns.1, <2 x i32> <i32 0, i32 2048>)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t = icmp slt i64 %i.next, 64
; CHECK-NEXT:    br i1 %t, label %i.loop, label %i.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %i.end ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 3712
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 28
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %last.buf, i64 %batch.offset
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %r, i64 %batch.offset.1
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 28, i32 192>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 128>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %w.buf, <2 x i32> <i32 192, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %matmul = call <896 x float> @llvm.tensor.matmul.v896f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %matmul, <2 x i32> <i32 28, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %transpose.2 = call <896 x float> @llvm.tensor.transpose.v896f32.v2i32(token %product, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %product.1 = call token @llvm.tensor.typeinfo.v896f32.v2i32(<896 x float> %transpose.2, <2 x i32> <i32 32, i32 28>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product.1, <2 x i32> <i32 0, i32 1624>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %batch.next, 58
; CHECK-NEXT:    br i1 %t.1, label %batch.loop, label %batch.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    call void @free(ptr %last.heap)
; CHECK-NEXT:    call void @free(ptr %w.heap)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @strided(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 1, i32 64, i32 58, i32 58>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %w = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 32, i32 64, i32 1, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call <51968 x float> @llvm.tensor.convolution(token %x, token %w, <2 x i32> <i32 1, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  store <51968 x float> %y, ptr %r
  ret void
}

; A depthwise convolution: sums of a few products, element by element, rounded once.
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
