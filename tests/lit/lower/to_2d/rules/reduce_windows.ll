; Reductions of windows: the elements of a small window are leaves of one tree.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; Overlapping 1 x 3 windows.
; CHECK-LABEL: define void @sliding(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 18>)
; CHECK-NEXT:    %tovector = call <64 x float> @llvm.tensor.tovector.v64f32(token %rows)
; CHECK-NEXT:    %next = getelementptr inbounds float, ptr %x, i64 1
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %next, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 18>)
; CHECK-NEXT:    %tovector.1 = call <64 x float> @llvm.tensor.tovector.v64f32(token %rows.1)
; CHECK-NEXT:    %t.1 = call <64 x float> @llvm.maximum.v64f32(<64 x float> %tovector, <64 x float> %tovector.1)
; CHECK-NEXT:    %next.1 = getelementptr inbounds float, ptr %x, i64 2
; CHECK-NEXT:    %rows.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %next.1, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 18>)
; CHECK-NEXT:    %tovector.2 = call <64 x float> @llvm.tensor.tovector.v64f32(token %rows.2)
; CHECK-NEXT:    %t.2 = call <64 x float> @llvm.maximum.v64f32(<64 x float> %t.1, <64 x float> %tovector.2)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float> %t.2, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @sliding(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 4, i32 18>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <64 x float> @llvm.tensor.reduce.max(token %t, <2 x i32> <i32 1, i32 3>, <2 x i32> <i32 1, i32 1>)
  store <64 x float> %v, ptr %c
  ret void
}

; Adjacent 2 x 2 windows, a minimum of integers: even and odd columns are deinterleaved first.
; CHECK-LABEL: define void @pooling(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %reduce.min.buf = alloca [64 x i32], align 64
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next.1, %i.end.1 ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 16
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 16
; CHECK-NEXT:    br label %i.loop.1
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop.1:
; CHECK-NEXT:    %i.1 = phi i64 [ 0, %i.loop ], [ %i.next, %i.loop.1 ]
; CHECK-NEXT:    %i.offset.2 = add i64 %i.offset, %i.1
; CHECK-NEXT:    %i.offset.3 = mul i64 %i.1, 8
; CHECK-NEXT:    %i.offset.4 = add i64 %i.offset.1, %i.offset.3
; CHECK-NEXT:    %from = getelementptr inbounds i32, ptr %x, i64 %i.offset.2
; CHECK-NEXT:    %to = getelementptr inbounds i32, ptr %reduce.min.buf, i64 %i.offset.4
; CHECK-NEXT:    %column = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %from, <2 x i32> <i32 8, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %column, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %i.next = add i64 %i.1, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %i.next, 2
; CHECK-NEXT:    br i1 %t.1, label %i.loop.1, label %i.end.1, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end.1:
; CHECK-NEXT:    %i.next.1 = add i64 %i, 1
; CHECK-NEXT:    %t.2 = icmp slt i64 %i.next.1, 4
; CHECK-NEXT:    br i1 %t.2, label %i.loop, label %i.end, !tlx.independent !{}
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %reduce.min.buf, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %tovector = call <16 x i32> @llvm.tensor.tovector.v16i32(token %rows)
; CHECK-NEXT:    %next = getelementptr inbounds i32, ptr %reduce.min.buf, i64 8
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %next, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %tovector.1 = call <16 x i32> @llvm.tensor.tovector.v16i32(token %rows.1)
; CHECK-NEXT:    %t.3 = icmp slt <16 x i32> %tovector, %tovector.1
; CHECK-NEXT:    %t.4 = select <16 x i1> %t.3, <16 x i32> %tovector, <16 x i32> %tovector.1
; CHECK-NEXT:    %next.1 = getelementptr inbounds i32, ptr %reduce.min.buf, i64 16
; CHECK-NEXT:    %rows.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %next.1, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %tovector.2 = call <16 x i32> @llvm.tensor.tovector.v16i32(token %rows.2)
; CHECK-NEXT:    %t.5 = icmp slt <16 x i32> %t.4, %tovector.2
; CHECK-NEXT:    %t.6 = select <16 x i1> %t.5, <16 x i32> %t.4, <16 x i32> %tovector.2
; CHECK-NEXT:    %next.2 = getelementptr inbounds i32, ptr %reduce.min.buf, i64 24
; CHECK-NEXT:    %rows.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %next.2, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT:    %tovector.3 = call <16 x i32> @llvm.tensor.tovector.v16i32(token %rows.3)
; CHECK-NEXT:    %t.7 = icmp slt <16 x i32> %t.6, %tovector.3
; CHECK-NEXT:    %t.8 = select <16 x i1> %t.7, <16 x i32> %t.6, <16 x i32> %tovector.3
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v16i32.v2i32(<16 x i32> %t.8, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @pooling(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(i32) %x, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <16 x i32> @llvm.tensor.reduce.min(token %t, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 2, i32 2>)
  store <16 x i32> %v, ptr %c
  ret void
}

; 5 x 5 windows: one dimension at a time.
; CHECK-LABEL: define void @large(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %reduce.add.buf = alloca [60 x i16], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %x, <2 x i32> <i32 1, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %tovector = call <60 x i16> @llvm.tensor.tovector.v60i16(token %rows)
; CHECK-NEXT:    %next = getelementptr inbounds i16, ptr %x, i64 20
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next, <2 x i32> <i32 1, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %tovector.1 = call <60 x i16> @llvm.tensor.tovector.v60i16(token %rows.1)
; CHECK-NEXT:    %add = add <60 x i16> %tovector, %tovector.1
; CHECK-NEXT:    %next.1 = getelementptr inbounds i16, ptr %x, i64 40
; CHECK-NEXT:    %rows.2 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next.1, <2 x i32> <i32 1, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %tovector.2 = call <60 x i16> @llvm.tensor.tovector.v60i16(token %rows.2)
; CHECK-NEXT:    %add.1 = add <60 x i16> %add, %tovector.2
; CHECK-NEXT:    %next.2 = getelementptr inbounds i16, ptr %x, i64 60
; CHECK-NEXT:    %rows.3 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next.2, <2 x i32> <i32 1, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %tovector.3 = call <60 x i16> @llvm.tensor.tovector.v60i16(token %rows.3)
; CHECK-NEXT:    %add.2 = add <60 x i16> %add.1, %tovector.3
; CHECK-NEXT:    %next.3 = getelementptr inbounds i16, ptr %x, i64 80
; CHECK-NEXT:    %rows.4 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next.3, <2 x i32> <i32 1, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %tovector.4 = call <60 x i16> @llvm.tensor.tovector.v60i16(token %rows.4)
; CHECK-NEXT:    %add.3 = add <60 x i16> %add.2, %tovector.4
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v60i16.v2i32(<60 x i16> %add.3, <2 x i32> <i32 1, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %reduce.add.buf, token %block, <2 x i32> <i32 0, i32 60>)
; CHECK-NEXT:    %rows.5 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %reduce.add.buf, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %tovector.5 = call <48 x i16> @llvm.tensor.tovector.v48i16(token %rows.5)
; CHECK-NEXT:    %next.4 = getelementptr inbounds i16, ptr %reduce.add.buf, i64 1
; CHECK-NEXT:    %rows.6 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next.4, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %tovector.6 = call <48 x i16> @llvm.tensor.tovector.v48i16(token %rows.6)
; CHECK-NEXT:    %add.4 = add <48 x i16> %tovector.5, %tovector.6
; CHECK-NEXT:    %next.5 = getelementptr inbounds i16, ptr %reduce.add.buf, i64 2
; CHECK-NEXT:    %rows.7 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next.5, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %tovector.7 = call <48 x i16> @llvm.tensor.tovector.v48i16(token %rows.7)
; CHECK-NEXT:    %add.5 = add <48 x i16> %add.4, %tovector.7
; CHECK-NEXT:    %next.6 = getelementptr inbounds i16, ptr %reduce.add.buf, i64 3
; CHECK-NEXT:    %rows.8 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next.6, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %tovector.8 = call <48 x i16> @llvm.tensor.tovector.v48i16(token %rows.8)
; CHECK-NEXT:    %add.6 = add <48 x i16> %add.5, %tovector.8
; CHECK-NEXT:    %next.7 = getelementptr inbounds i16, ptr %reduce.add.buf, i64 4
; CHECK-NEXT:    %rows.9 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %next.7, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 20>)
; CHECK-NEXT:    %tovector.9 = call <48 x i16> @llvm.tensor.tovector.v48i16(token %rows.9)
; CHECK-NEXT:    %add.7 = add <48 x i16> %add.6, %tovector.9
; CHECK-NEXT:    %block.1 = call token @llvm.tensor.typeinfo.v48i16.v2i32(<48 x i16> %add.7, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block.1, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @large(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(i16) %x, <2 x i32> <i32 7, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <48 x i16> @llvm.tensor.reduce.add(token %t, <2 x i32> <i32 5, i32 5>, <2 x i32> <i32 1, i32 1>)
  store <48 x i16> %v, ptr %c
  ret void
}
