; Permutations with reshapes: copies into the result, viewed with the permuted extents.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; Interleaved rows are deinterleaved: 8 x 16 x 2 -> 8 x 2 x 16 -> 16 x 16.
; CHECK-LABEL: define void @rows(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next.1, %i.end.1 ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 32
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 32
; CHECK-NEXT:    br label %i.loop.1
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop.1:
; CHECK-NEXT:    %i.1 = phi i64 [ 0, %i.loop ], [ %i.next, %i.loop.1 ]
; CHECK-NEXT:    %i.offset.2 = add i64 %i.offset, %i.1
; CHECK-NEXT:    %i.offset.3 = mul i64 %i.1, 16
; CHECK-NEXT:    %i.offset.4 = add i64 %i.offset.1, %i.offset.3
; CHECK-NEXT:    %from = getelementptr inbounds bfloat, ptr %x, i64 %i.offset.2
; CHECK-NEXT:    %to = getelementptr inbounds bfloat, ptr %c, i64 %i.offset.4
; CHECK-NEXT:    %column = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %from, <2 x i32> <i32 16, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %column, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %i.next = add i64 %i.1, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %i.next, 2
; CHECK-NEXT:    br i1 %t.1, label %i.loop.1, label %i.end.1, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end.1:
; CHECK-NEXT:    %i.next.1 = add i64 %i, 1
; CHECK-NEXT:    %t.2 = icmp slt i64 %i.next.1, 8
; CHECK-NEXT:    br i1 %t.2, label %i.loop, label %i.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @rows(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <3 x i32> <i32 8, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %v = call <256 x bfloat> @llvm.tensor.reshape.permute(token %t, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 16, i32 16>)
  store <256 x bfloat> %v, ptr %c
  ret void
}

; Rows of the destination have a pitch of 20: it can still be viewed as 8 x 2 x 16.
; CHECK-LABEL: define void @pitches(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next.1, %i.end.1 ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 32
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 40
; CHECK-NEXT:    br label %i.loop.1
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop.1:
; CHECK-NEXT:    %i.1 = phi i64 [ 0, %i.loop ], [ %i.next, %i.loop.1 ]
; CHECK-NEXT:    %i.offset.2 = add i64 %i.offset, %i.1
; CHECK-NEXT:    %i.offset.3 = mul i64 %i.1, 20
; CHECK-NEXT:    %i.offset.4 = add i64 %i.offset.1, %i.offset.3
; CHECK-NEXT:    %from = getelementptr inbounds bfloat, ptr %x, i64 %i.offset.2
; CHECK-NEXT:    %to = getelementptr inbounds bfloat, ptr %c, i64 %i.offset.4
; CHECK-NEXT:    %column = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %from, <2 x i32> <i32 16, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %column, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %i.next = add i64 %i.1, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %i.next, 2
; CHECK-NEXT:    br i1 %t.1, label %i.loop.1, label %i.end.1, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end.1:
; CHECK-NEXT:    %i.next.1 = add i64 %i, 1
; CHECK-NEXT:    %t.2 = icmp slt i64 %i.next.1, 8
; CHECK-NEXT:    br i1 %t.2, label %i.loop, label %i.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @pitches(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <3 x i32> <i32 8, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %v = call <256 x bfloat> @llvm.tensor.reshape.permute(token %t, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 16, i32 16>)
  %r = call token @llvm.tensor.typeinfo(<256 x bfloat> %v, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %r, <2 x i32> <i32 0, i32 20>)
  ret void
}

; Neither side can be viewed in the shape of the other: a dense buffer is between them.
; CHECK-LABEL: define void @through(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %x.buf = alloca [24 x float], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 4, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT:    %transpose = call <24 x float> @llvm.tensor.transpose.v24f32.v2i32(token %rows, <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT:    %columns = call token @llvm.tensor.typeinfo.v24f32.v2i32(<24 x float> %transpose, <2 x i32> <i32 6, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %x.buf, token %columns, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x.buf, <2 x i32> <i32 3, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %rows.1, <2 x i32> <i32 0, i32 11>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @through(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 4, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 9>)
  %v = call <24 x float> @llvm.tensor.reshape.permute(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 3, i32 8>)
  %r = call token @llvm.tensor.typeinfo(<24 x float> %v, <2 x i32> <i32 3, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %r, <2 x i32> <i32 0, i32 11>)
  ret void
}
