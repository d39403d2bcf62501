; Stores of tokens are copies: memcpy where both sides are dense, else 2-D copies in loops.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @dense(ptr noalias %a, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %a, i64 48, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @dense(ptr noalias %a, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(half) %a, <3 x i32> <i32 2, i32 3, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <3 x i32> zeroinitializer)
  ret void
}

; Rows 10 elements apart in planes of 12 rows: the proposal's store.
; CHECK-LABEL: define void @pitched(ptr noalias %a, ptr noalias %c) {
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 48
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 120
; CHECK-NEXT:    %from = getelementptr inbounds float, ptr %a, i64 %i.offset
; CHECK-NEXT:    %to = getelementptr inbounds float, ptr %c, i64 %i.offset.1
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %from, <2 x i32> <i32 6, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %rows, <2 x i32> <i32 0, i32 10>)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t = icmp slt i64 %i.next, 16
; CHECK-NEXT:    br i1 %t, label %i.loop, label %i.end
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @pitched(ptr noalias %a, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 16, i32 6, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> <i32 0, i32 0, i32 8>)
  call void @llvm.tensor.store(ptr %c, token %x, <3 x i32> <i32 0, i32 12, i32 10>)
  ret void
}

; Padding is neither read nor written.
; CHECK-LABEL: define void @padding(ptr noalias %a, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %a, i64 40, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @padding(ptr noalias %a, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(i64) %a, <1 x i32> <i32 8>, <1 x i32> zeroinitializer, <1 x i32> <i32 3>, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <1 x i32> zeroinitializer)
  ret void
}

; Source and destination may overlap: everything is read before anything is written.
; CHECK-LABEL: define void @overlap(ptr %a, ptr %c) {
; CHECK-NEXT:    %copy.buf = alloca [12 x float], align 64
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %copy.buf, token %rows, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %rows.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %copy.buf, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %rows.1, <2 x i32> <i32 0, i32 5>)
; CHECK-NEXT:    call void @llvm.memmove.p0.p0.i64(ptr %c, ptr %a, i64 16384, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @overlap(ptr %a, ptr %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 6>)
  call void @llvm.tensor.store(ptr %c, token %x, <2 x i32> <i32 0, i32 5>)
  %v = load <4096 x float>, ptr %a
  store <4096 x float> %v, ptr %c
  ret void
}

; CHECK-LABEL: define void @zeros(ptr %c) {
; CHECK-NEXT:    %scalar = call token @llvm.tensor.typeinfo.v1i32.v2i32(<1 x i32> <i32 0>, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %broadcast = call <6400000 x i32> @llvm.tensor.broadcast.v6400000i32.v2i32.v2i32(token %scalar, <2 x i32> <i32 8000, i32 800>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v6400000i32.v2i32(<6400000 x i32> %broadcast, <2 x i32> <i32 8000, i32 800>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 1024>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @zeros(ptr %c) {
  %x = call token @llvm.tensor.typeinfo(<6400000 x i32> zeroinitializer, <4 x i32> <i32 1, i32 10, i32 800, i32 800>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <4 x i32> <i32 0, i32 0, i32 0, i32 1024>)
  ret void
}

; No dimension is contiguous on both sides: of the long ones, columns of the image have the nearest neighbours.
; CHECK-LABEL: define void @every_second_pixel(ptr noalias %a, ptr noalias %c) {
; CHECK:         %i.offset = mul i64 %i, 320
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 960
; CHECK:         %i.offset.2 = mul i64 %i.1, 32000
; CHECK:         %column = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %from, <2 x i32> <i32 80, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %column, <2 x i32> <i32 0, i32 12>)
; CHECK-NEXT:    %i.next = add i64 %i.1, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %i.next, 3
; CHECK:         %t.2 = icmp slt i64 %i.next.1, 100
define void @every_second_pixel(ptr noalias %a, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <4 x i32> <i32 3, i32 100, i32 80, i32 1>, <4 x i32> <i32 2, i32 0, i32 1, i32 3>, <4 x i32> zeroinitializer, <4 x i32> <i32 0, i32 100, i32 160, i32 2>)
  %v = call <24000 x float> @llvm.tensor.transpose(token %x, <4 x i32> <i32 0, i32 1, i32 2, i32 3>)
  %t = call token @llvm.tensor.typeinfo(<24000 x float> %v, <4 x i32> <i32 100, i32 80, i32 3, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <4 x i32> <i32 0, i32 80, i32 12, i32 1>)
  ret void
}
