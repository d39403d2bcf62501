; Broadcasts: copies with stride 0 along some dimensions, and fills.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; A bias repeated as three rows.
; CHECK-LABEL: define void @row(ptr %bias, ptr noalias %c) {
; CHECK-NEXT:    %part = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %bias, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    %broadcast = call <12 x float> @llvm.tensor.broadcast.v12f32.v2i32.v2i32(token %part, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v12f32.v2i32(<12 x float> %broadcast, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @row(ptr %bias, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %bias, <1 x i32> <i32 4>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <12 x float> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 3, i32 4>, <1 x i32> <i32 1>)
  store <12 x float> %v, ptr %c
  ret void
}

; A column repeated four times, of a matrix whose only column with data is the first.
; CHECK-LABEL: define void @column(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %part = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %x, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %broadcast = call <12 x i32> @llvm.tensor.broadcast.v12i32.v2i32.v2i32(token %part, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v12i32.v2i32(<12 x i32> %broadcast, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @column(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.typeinfo(ptr elementtype(<6 x i32>) %x, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>)
  %v = call <12 x i32> @llvm.tensor.broadcast(token %t, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>)
  store <12 x i32> %v, ptr %c
  ret void
}

; Dimensions are permuted: 2 x 3 becomes 3 x 5 x 2.
; CHECK-LABEL: define void @turned(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 2
; CHECK-NEXT:    %to = getelementptr inbounds i16, ptr %c, i64 %i.offset
; CHECK-NEXT:    %columns = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i16) %x, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    %transpose = call <6 x i16> @llvm.tensor.transpose.v6i16.v2i32(token %columns, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v6i16.v2i32(<6 x i16> %transpose, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %block, <2 x i32> <i32 0, i32 10>)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %i.next, 5
; CHECK-NEXT:    br i1 %t.1, label %i.loop, label %i.end
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @turned(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.typeinfo(ptr elementtype(<6 x i16>) %x, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %v = call <30 x i16> @llvm.tensor.broadcast(token %t, <3 x i32> <i32 3, i32 5, i32 2>, <2 x i32> <i32 2, i32 0>)
  store <30 x i16> %v, ptr %c
  ret void
}

; A scalar that is known at run time; the padding of the result is zero.
; CHECK-LABEL: define void @fill(ptr %x, float %s, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 48, i1 false)
; CHECK-NEXT:    %scalar = insertelement <1 x float> undef, float %s, i32 0
; CHECK-NEXT:    %scalar.1 = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %scalar, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %broadcast = call <9 x float> @llvm.tensor.broadcast.v9f32.v2i32.v2i32(token %scalar.1, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v9f32.v2i32(<9 x float> %broadcast, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @fill(ptr %x, float %s, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %v = call <12 x float> @llvm.tensor.broadcast(token %t, float %s)
  store <12 x float> %v, ptr %c
  ret void
}

; Zeros.
; CHECK-LABEL: define void @zero(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 48, i1 false)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @zero(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <12 x float> @llvm.tensor.broadcast(token %t, float 0.0)
  store <12 x float> %v, ptr %c
  ret void
}
