; Contractions: one dimension of each role is that of matrices, others are merged with it, or become loops or sums.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; Queries times keys: both batch dimensions are loops, nothing is copied.
; CHECK-LABEL: define void @attention(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next.1, %batch.end.1 ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 32768
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 32768
; CHECK-NEXT:    %batch.offset.2 = mul i64 %batch, 65536
; CHECK-NEXT:    br label %batch.loop.1
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop.1:
; CHECK-NEXT:    %batch.1 = phi i64 [ 0, %batch.loop ], [ %batch.next, %batch.loop.1 ]
; CHECK-NEXT:    %batch.offset.3 = mul i64 %batch.1, 64
; CHECK-NEXT:    %batch.offset.4 = add i64 %batch.offset, %batch.offset.3
; CHECK-NEXT:    %batch.offset.5 = mul i64 %batch.1, 64
; CHECK-NEXT:    %batch.offset.6 = add i64 %batch.offset.1, %batch.offset.5
; CHECK-NEXT:    %batch.offset.7 = mul i64 %batch.1, 16384
; CHECK-NEXT:    %batch.offset.8 = add i64 %batch.offset.2, %batch.offset.7
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %p, i64 %batch.offset.4
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %q, i64 %batch.offset.6
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %r, i64 %batch.offset.8
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 128, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 256>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 128, i32 64>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 256>)
; CHECK-NEXT:    %matmul = call <16384 x float> @llvm.tensor.matmul.v16384f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v16384f32.v2i32(<16384 x float> %matmul, <2 x i32> <i32 128, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 128>)
; CHECK-NEXT:    %batch.next = add i64 %batch.1, 1
; CHECK-NEXT:    %t = icmp slt i64 %batch.next, 4
; CHECK-NEXT:    br i1 %t, label %batch.loop.1, label %batch.end.1
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end.1:
; CHECK-NEXT:    %batch.next.1 = add i64 %batch, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %batch.next.1, 2
; CHECK-NEXT:    br i1 %t.1, label %batch.loop, label %batch.end
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @attention(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %p, <4 x i32> <i32 2, i32 128, i32 4, i32 64>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %q, <4 x i32> <i32 2, i32 128, i32 4, i32 64>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <131072 x float> @llvm.tensor.contract(token %a, token %b, <1 x i32> <i32 3>, <1 x i32> <i32 3>, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 2>)
  store <131072 x float> %c, ptr %r
  ret void
}

; Two summed dimensions that are not contiguous: the inner one is that of a product, the outer one a chain of products.
; Sums of half are kept as float, and rounded once.
; CHECK-LABEL: define void @sums(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %p, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 400>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %q, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    %matmul = call <4096 x float> @llvm.tensor.matmul.v4096f32(token %lhs, token %rhs)
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds half, ptr %p, i64 80
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds half, ptr %q, i64 4096
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v4096f32.v2i32(<4096 x float> %matmul, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 400>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    %smma = call <4096 x float> @llvm.tensor.smma.v4096f32(token %sum, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %lhs.ptr.1 = getelementptr inbounds half, ptr %p, i64 160
; CHECK-NEXT:    %rhs.ptr.1 = getelementptr inbounds half, ptr %q, i64 8192
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v4096f32.v2i32(<4096 x float> %smma, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr.1, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 400>)
; CHECK-NEXT:    %rhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr.1, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    %smma.1 = call <4096 x float> @llvm.tensor.smma.v4096f32(token %sum.1, token %lhs.2, token %rhs.2)
; CHECK-NEXT:    %lhs.ptr.2 = getelementptr inbounds half, ptr %p, i64 240
; CHECK-NEXT:    %rhs.ptr.2 = getelementptr inbounds half, ptr %q, i64 12288
; CHECK-NEXT:    %sum.2 = call token @llvm.tensor.typeinfo.v4096f32.v2i32(<4096 x float> %smma.1, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr.2, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 400>)
; CHECK-NEXT:    %rhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr.2, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    %smma.2 = call <4096 x float> @llvm.tensor.smma.v4096f32(token %sum.2, token %lhs.3, token %rhs.3)
; CHECK-NEXT:    %lhs.ptr.3 = getelementptr inbounds half, ptr %p, i64 320
; CHECK-NEXT:    %rhs.ptr.3 = getelementptr inbounds half, ptr %q, i64 16384
; CHECK-NEXT:    %sum.3 = call token @llvm.tensor.typeinfo.v4096f32.v2i32(<4096 x float> %smma.2, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr.3, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 400>)
; CHECK-NEXT:    %rhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr.3, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    %smma.3 = call <4096 x float> @llvm.tensor.smma.v4096f32(token %sum.3, token %lhs.4, token %rhs.4)
; CHECK-NEXT:    %t = fptrunc <4096 x float> %smma.3 to <4096 x half>
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v4096f16.v2i32(<4096 x half> %t, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %r, token %product, <2 x i32> <i32 0, i32 64>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @sums(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %a = call token @llvm.tensor.load(ptr elementtype(half) %p, <3 x i32> <i32 64, i32 5, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> <i32 0, i32 0, i32 80>)
  %b = call token @llvm.tensor.load(ptr elementtype(half) %q, <3 x i32> <i32 5, i32 64, i32 64>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %c = call <4096 x half> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 1>)
  store <4096 x half> %c, ptr %r
  ret void
}

; All dimensions are summed: a row times a column.
; CHECK-LABEL: define void @dot(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %p, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %q, <2 x i32> <i32 6, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %matmul = call <1 x float> @llvm.tensor.matmul.v1f32(token %lhs, token %rhs)
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds half, ptr %p, i64 6
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds half, ptr %q, i64 8
; CHECK-NEXT:    %sum = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %matmul, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    %rhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr, <2 x i32> <i32 6, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %smma = call <1 x float> @llvm.tensor.smma.v1f32(token %sum, token %lhs.1, token %rhs.1)
; CHECK-NEXT:    %lhs.ptr.1 = getelementptr inbounds half, ptr %p, i64 12
; CHECK-NEXT:    %rhs.ptr.1 = getelementptr inbounds half, ptr %q, i64 16
; CHECK-NEXT:    %sum.1 = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %smma, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr.1, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    %rhs.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr.1, <2 x i32> <i32 6, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %smma.1 = call <1 x float> @llvm.tensor.smma.v1f32(token %sum.1, token %lhs.2, token %rhs.2)
; CHECK-NEXT:    %lhs.ptr.2 = getelementptr inbounds half, ptr %p, i64 18
; CHECK-NEXT:    %rhs.ptr.2 = getelementptr inbounds half, ptr %q, i64 24
; CHECK-NEXT:    %sum.2 = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %smma.1, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr.2, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    %rhs.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr.2, <2 x i32> <i32 6, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %smma.2 = call <1 x float> @llvm.tensor.smma.v1f32(token %sum.2, token %lhs.3, token %rhs.3)
; CHECK-NEXT:    %lhs.ptr.3 = getelementptr inbounds half, ptr %p, i64 24
; CHECK-NEXT:    %rhs.ptr.3 = getelementptr inbounds half, ptr %q, i64 32
; CHECK-NEXT:    %sum.3 = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %smma.2, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %lhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %lhs.ptr.3, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    %rhs.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(half) %rhs.ptr.3, <2 x i32> <i32 6, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %smma.3 = call <1 x float> @llvm.tensor.smma.v1f32(token %sum.3, token %lhs.4, token %rhs.4)
; CHECK-NEXT:    %t = fptrunc <1 x float> %smma.3 to <1 x half>
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v1f16.v2i32(<1 x half> %t, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %r, token %product, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @dot(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %a = call token @llvm.tensor.load(ptr elementtype(half) %p, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(half) %q, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 8>)
  %c = call <1 x half> @llvm.tensor.contract(token %a, token %b, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>)
  store <1 x half> %c, ptr %r
  ret void
}
