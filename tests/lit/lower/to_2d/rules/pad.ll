; Padding of a tensor with a value, and cropping.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; A row of zeros above, the last column cropped.
; CHECK-LABEL: define void @zeros(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    call void @llvm.memset.p0.i64(ptr %c, i8 0, i64 12, i1 false)
; CHECK-NEXT:    %part = getelementptr inbounds float, ptr %c, i64 3
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %part, token %rows, <2 x i32> <i32 0, i32 3>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @zeros(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <12 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 -1>, float 0.0)
  store <12 x float> %v, ptr %c
  ret void
}

; A scalar known at run time: the row above, then the columns left and right of the rows of %x.
; CHECK-LABEL: define void @border(ptr %x, float %s, ptr noalias %c) {
; CHECK-NEXT:    %scalar = insertelement <1 x float> undef, float %s, i32 0
; CHECK-NEXT:    %scalar.1 = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %scalar, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %broadcast = call <7 x float> @llvm.tensor.broadcast.v7f32.v2i32.v2i32(token %scalar.1, <2 x i32> <i32 1, i32 7>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v7f32.v2i32(<7 x float> %broadcast, <2 x i32> <i32 1, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT:    %part = getelementptr inbounds float, ptr %c, i64 7
; CHECK-NEXT:    %scalar.2 = insertelement <1 x float> undef, float %s, i32 0
; CHECK-NEXT:    %scalar.3 = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %scalar.2, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %broadcast.1 = call <3 x float> @llvm.tensor.broadcast.v3f32.v2i32.v2i32(token %scalar.3, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block.1 = call token @llvm.tensor.typeinfo.v3f32.v2i32(<3 x float> %broadcast.1, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %part, token %block.1, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT:    %part.1 = getelementptr inbounds float, ptr %c, i64 12
; CHECK-NEXT:    %scalar.4 = insertelement <1 x float> undef, float %s, i32 0
; CHECK-NEXT:    %scalar.5 = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %scalar.4, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %broadcast.2 = call <6 x float> @llvm.tensor.broadcast.v6f32.v2i32.v2i32(token %scalar.5, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block.2 = call token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float> %broadcast.2, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %part.1, token %block.2, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT:    %part.2 = getelementptr inbounds float, ptr %c, i64 8
; CHECK-NEXT:    %rows = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %part.2, token %rows, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @border(ptr %x, float %s, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <28 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 2>, float %s)
  store <28 x float> %v, ptr %c
  ret void
}

; One element between neighbours of a row: the result is filled, then every second column is written.
; CHECK-LABEL: define void @between(ptr %x, ptr noalias %c) {
; CHECK-NEXT:    %scalar = call token @llvm.tensor.typeinfo.v1i32.v2i32(<1 x i32> <i32 7>, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    %broadcast = call <21 x i32> @llvm.tensor.broadcast.v21i32.v2i32.v2i32(token %scalar, <2 x i32> <i32 1, i32 21>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    %block = call token @llvm.tensor.typeinfo.v21i32.v2i32(<21 x i32> %broadcast, <2 x i32> <i32 1, i32 21>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %c, token %block, <2 x i32> <i32 0, i32 21>)
; CHECK-NEXT:    br label %i.loop
; CHECK-EMPTY:
; CHECK-NEXT:  i.loop:
; CHECK-NEXT:    %i = phi i64 [ 0, %0 ], [ %i.next, %i.loop ]
; CHECK-NEXT:    %i.offset = mul i64 %i, 4
; CHECK-NEXT:    %i.offset.1 = mul i64 %i, 7
; CHECK-NEXT:    %from = getelementptr inbounds i32, ptr %x, i64 %i.offset
; CHECK-NEXT:    %to = getelementptr inbounds i32, ptr %c, i64 %i.offset.1
; CHECK-NEXT:    %column = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %from, <2 x i32> <i32 4, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %to, token %column, <2 x i32> <i32 0, i32 2>)
; CHECK-NEXT:    %i.next = add i64 %i, 1
; CHECK-NEXT:    %t.1 = icmp slt i64 %i.next, 3
; CHECK-NEXT:    br i1 %t.1, label %i.loop, label %i.end
; CHECK-EMPTY:
; CHECK-NEXT:  i.end:
; CHECK-NEXT:    ret void
; CHECK-NEXT:  }
define void @between(ptr %x, ptr noalias %c) {
  %t = call token @llvm.tensor.load(ptr elementtype(i32) %x, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <21 x i32> @llvm.tensor.pad(token %t, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer, i32 7, <2 x i32> <i32 0, i32 1>)
  store <21 x i32> %v, ptr %c
  ret void
}

; Equal pads are one, also of another token of the tensor; another value in the border makes another pad.
; CHECK-LABEL: define void @equal(
; CHECK-NEXT:    %p.buf = alloca [30 x float]
; CHECK-NEXT:    %s.buf = alloca [30 x float]
; CHECK-NOT:     alloca [30 x float]
; CHECK:         ret void
define void @equal(ptr %x, ptr noalias %c, ptr noalias %d, ptr noalias %e, ptr noalias %f) {
  %v = load <12 x float>, ptr %x
  %w = fmul <12 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %u = call token @llvm.tensor.typeinfo(<12 x float> %w, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %p = call <30 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>, float 0.0)
  %q = call <30 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>, float 0.0)
  %r = call <30 x float> @llvm.tensor.pad(token %u, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>, float 0.0)
  %s = call <30 x float> @llvm.tensor.pad(token %u, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>, float 1.0)
  %pt = call token @llvm.tensor.typeinfo(<30 x float> %p, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %qt = call token @llvm.tensor.typeinfo(<30 x float> %q, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %rt = call token @llvm.tensor.typeinfo(<30 x float> %r, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %st = call token @llvm.tensor.typeinfo(<30 x float> %s, <2 x i32> <i32 5, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %a = call <5 x float> @llvm.tensor.reduce.add(token %pt, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 1, i32 1>)
  %b = call <6 x float> @llvm.tensor.reduce.add(token %qt, <2 x i32> <i32 5, i32 1>, <2 x i32> <i32 1, i32 1>)
  %g = call <5 x float> @llvm.tensor.reduce.max(token %rt, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 1, i32 1>)
  %h = call <6 x float> @llvm.tensor.reduce.max(token %st, <2 x i32> <i32 5, i32 1>, <2 x i32> <i32 1, i32 1>)
  store <5 x float> %a, ptr %c
  store <6 x float> %b, ptr %d
  store <5 x float> %g, ptr %e
  store <6 x float> %h, ptr %f
  ret void
}
