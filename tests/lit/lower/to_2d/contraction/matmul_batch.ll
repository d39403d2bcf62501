; Batch dimensions become loops; neighbours that are contiguous in all operands become one loop.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @collapsed(ptr %a, ptr %b, ptr noalias %c) {
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 12
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 20
; CHECK-NEXT:    %batch.offset.2 = mul i64 %batch, 15
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %a, i64 %batch.offset
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %b, i64 %batch.offset.1
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %c, i64 %batch.offset.2
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %matmul = call <15 x float> @llvm.tensor.matmul.v15f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v15f32.v2i32(<15 x float> %matmul, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %batch.next, 20
; CHECK-NEXT:    br i1 %t.1, label %batch.loop, label %batch.end
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @collapsed(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <4 x i32> <i32 2, i32 10, i32 3, i32 4>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <4 x i32> <i32 2, i32 10, i32 4, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %m = call <300 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<300 x float> %m, <4 x i32> <i32 2, i32 10, i32 3, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <4 x i32> zeroinitializer)
  ret void
}

; %x has its batch dimensions in the other order in memory, and a row pitch of 5: two loops.
; CHECK-LABEL: define void @nested(ptr %a, ptr %b, ptr noalias %c) {
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next.1, %batch.end.1 ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 15
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 200
; CHECK-NEXT:    %batch.offset.2 = mul i64 %batch, 150
; CHECK-NEXT:    br label %batch.loop.1
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop.1:
; CHECK-NEXT:    %batch.1 = phi i64 [ 0, %batch.loop ], [ %batch.next, %batch.loop.1 ]
; CHECK-NEXT:    %batch.offset.3 = mul i64 %batch.1, 30
; CHECK-NEXT:    %batch.offset.4 = add i64 %batch.offset, %batch.offset.3
; CHECK-NEXT:    %batch.offset.5 = mul i64 %batch.1, 20
; CHECK-NEXT:    %batch.offset.6 = add i64 %batch.offset.1, %batch.offset.5
; CHECK-NEXT:    %batch.offset.7 = mul i64 %batch.1, 15
; CHECK-NEXT:    %batch.offset.8 = add i64 %batch.offset.2, %batch.offset.7
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %a, i64 %batch.offset.4
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %b, i64 %batch.offset.6
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %c, i64 %batch.offset.8
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %matmul = call <15 x float> @llvm.tensor.matmul.v15f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v15f32.v2i32(<15 x float> %matmul, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %batch.next = add i64 %batch.1, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %batch.next, 10
; CHECK-NEXT:    br i1 %t.1, label %batch.loop.1, label %batch.end.1
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end.1:
; CHECK-NEXT:    %batch.next.1 = add i64 %batch, 1
; CHECK-NEXT:    %t.2 = icmp slt i64 %batch.next.1, 2
; CHECK-NEXT:    br i1 %t.2, label %batch.loop, label %batch.end
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @nested(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <4 x i32> <i32 10, i32 2, i32 3, i32 4>, <4 x i32> <i32 1, i32 0, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> <i32 0, i32 0, i32 0, i32 5>)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <4 x i32> <i32 2, i32 10, i32 4, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %m = call <300 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<300 x float> %m, <4 x i32> <i32 2, i32 10, i32 3, i32 5>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <4 x i32> zeroinitializer)
  ret void
}

; The batch is innermost in %x: neither rows nor columns are dense, so it is copied first.
; CHECK-LABEL: define void @batch_innermost(ptr %a, ptr %b, ptr noalias %c) {
; CHECK-NEXT:    %lhs.buf = alloca [72 x float], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 12, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    %transpose = call <72 x float> @llvm.tensor.transpose.v72f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v72f32.v2i32(<72 x float> %transpose, <2 x i32> <i32 6, i32 12>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %lhs.buf, token %columns, <2 x i32> <i32 0, i32 12>)
; CHECK-NEXT:    br label %batch.loop
; CHECK-EMPTY:
; CHECK-NEXT:  batch.loop:
; CHECK-NEXT:    %batch = phi i64 [ 0, %0 ], [ %batch.next, %batch.loop ]
; CHECK-NEXT:    %batch.offset = mul i64 %batch, 12
; CHECK-NEXT:    %batch.offset.1 = mul i64 %batch, 20
; CHECK-NEXT:    %batch.offset.2 = mul i64 %batch, 15
; CHECK-NEXT:    %lhs.ptr = getelementptr inbounds float, ptr %lhs.buf, i64 %batch.offset
; CHECK-NEXT:    %rhs.ptr = getelementptr inbounds float, ptr %b, i64 %batch.offset.1
; CHECK-NEXT:    %out.ptr = getelementptr inbounds float, ptr %c, i64 %batch.offset.2
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %matmul = call <15 x float> @llvm.tensor.matmul.v15f32(token %lhs, token %rhs)
; CHECK-NEXT:    %product = call token @llvm.tensor.typeinfo.v15f32.v2i32(<15 x float> %matmul, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    %batch.next = add i64 %batch, 1
; CHECK-NEXT:    %t = icmp slt i64 %batch.next, 6
; CHECK-NEXT:    br i1 %t, label %batch.loop, label %batch.end
; CHECK-EMPTY:
; CHECK-NEXT:  batch.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @batch_innermost(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 3, i32 4, i32 6>, <3 x i32> <i32 1, i32 2, i32 0>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 6, i32 4, i32 5>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <90 x float> @llvm.tensor.matmul(token %x, token %y)
  store <90 x float> %m, ptr %c
  ret void
}
