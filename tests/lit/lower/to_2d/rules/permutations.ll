; Permuted operands are read where they lie, and results whose only use is permuted are written in that order.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll -o %t.o.ll --target=avx512 --check

; The heads of a matrix: rows of a head are 8 apart.
; CHECK-LABEL: define void @split(
; CHECK-NOT:     alloca
; CHECK:         %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %lhs.ptr, <2 x i32> <i32 6, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 8>)
; CHECK:         ret void
define void @split(ptr noalias %x, ptr noalias %k, ptr noalias %c) {
  %xt = call token @llvm.tensor.load(ptr elementtype(float) %x, <3 x i32> <i32 6, i32 2, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %q = call <48 x float> @llvm.tensor.reshape.permute(token %xt, <3 x i32> <i32 1, i32 0, i32 2>, <3 x i32> <i32 2, i32 6, i32 4>)
  %qt = call token @llvm.tensor.typeinfo(<48 x float> %q, <3 x i32> <i32 2, i32 6, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %kt = call token @llvm.tensor.load(ptr elementtype(float) %k, <3 x i32> <i32 2, i32 4, i32 6>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %s = call <72 x float> @llvm.tensor.matmul(token %qt, token %kt)
  store <72 x float> %s, ptr %c, align 4
  ret void
}

; Heads that are joined: each product writes columns of the result, which is stored, or the operand of another product.
; CHECK-LABEL: define void @join(
; CHECK-NOT:     alloca
; CHECK:         %out.ptr = getelementptr inbounds float, ptr %c, i64 %batch.offset{{.*}}
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 8>)
; CHECK:         ret void
define void @join(ptr noalias %s, ptr noalias %v, ptr noalias %c) {
  %st = call token @llvm.tensor.load(ptr elementtype(float) %s, <3 x i32> <i32 2, i32 6, i32 6>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %vt = call token @llvm.tensor.load(ptr elementtype(float) %v, <3 x i32> <i32 2, i32 6, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %o = call <48 x float> @llvm.tensor.matmul(token %st, token %vt)
  %ot = call token @llvm.tensor.typeinfo(<48 x float> %o, <3 x i32> <i32 2, i32 6, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %j = call <48 x float> @llvm.tensor.reshape.permute(token %ot, <3 x i32> <i32 1, i32 0, i32 2>, <2 x i32> <i32 6, i32 8>)
  store <48 x float> %j, ptr %c, align 4
  ret void
}

; CHECK-LABEL: define void @joined_operand(
; CHECK:         %j.buf = alloca [48 x float]
; CHECK-NOT:     alloca
; CHECK:         %out.ptr = getelementptr inbounds float, ptr %j.buf, i64 %batch.offset{{.*}}
; CHECK:         %lhs.1 = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %j.buf, <2 x i32> <i32 6, i32 8>
define void @joined_operand(ptr noalias %s, ptr noalias %v, ptr noalias %w, ptr noalias %c) {
  %st = call token @llvm.tensor.load(ptr elementtype(float) %s, <3 x i32> <i32 2, i32 6, i32 6>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %vt = call token @llvm.tensor.load(ptr elementtype(float) %v, <3 x i32> <i32 2, i32 6, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %wt = call token @llvm.tensor.load(ptr elementtype(float) %w, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %o = call <48 x float> @llvm.tensor.matmul(token %st, token %vt)
  %ot = call token @llvm.tensor.typeinfo(<48 x float> %o, <3 x i32> <i32 2, i32 6, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %j = call <48 x float> @llvm.tensor.reshape.permute(token %ot, <3 x i32> <i32 1, i32 0, i32 2>, <2 x i32> <i32 6, i32 8>)
  %jt = call token @llvm.tensor.typeinfo(<48 x float> %j, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %p = call <96 x float> @llvm.tensor.matmul(token %jt, token %wt)
  store <96 x float> %p, ptr %c, align 4
  ret void
}

; Channels innermost in the image and in the result: neither is copied.
; CHECK-LABEL: define void @channels_last(
; CHECK-NOT:     %xp.buf
; CHECK-NOT:     %y.buf
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %product, <2 x i32> <i32 0, i32 32>)
define void @channels_last(ptr noalias %x, ptr noalias %w, ptr noalias %c) {
  %xt = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 8, i32 8, i32 16>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %wt = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 32, i32 16, i32 1, i32 1>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %xp = call <1024 x float> @llvm.tensor.reshape.permute(token %xt, <4 x i32> <i32 0, i32 3, i32 1, i32 2>, <4 x i32> <i32 1, i32 16, i32 8, i32 8>)
  %xpt = call token @llvm.tensor.typeinfo(<1024 x float> %xp, <4 x i32> <i32 1, i32 16, i32 8, i32 8>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %y = call <2048 x float> @llvm.tensor.convolution(token %xpt, token %wt)
  %yt = call token @llvm.tensor.typeinfo(<2048 x float> %y, <4 x i32> <i32 1, i32 32, i32 8, i32 8>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  %z = call <2048 x float> @llvm.tensor.reshape.permute(token %yt, <4 x i32> <i32 0, i32 2, i32 3, i32 1>, <4 x i32> <i32 1, i32 8, i32 8, i32 32>)
  store <2048 x float> %z, ptr %c, align 4
  ret void
}

; A map is read in the other order: only products write elements that are apart.
; CHECK-LABEL: define void @map(
; CHECK:         %e.buf = alloca [48 x float]
define void @map(ptr noalias %x, ptr noalias %c) {
  %v = load <48 x float>, ptr %x, align 4
  %e = fmul <48 x float> %v, %v
  %et = call token @llvm.tensor.typeinfo(<48 x float> %e, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %z = call <48 x float> @llvm.tensor.reshape.permute(token %et, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 8, i32 6>)
  store <48 x float> %z, ptr %c, align 4
  ret void
}
