; Parts of tensors are read where these lie: no part has a buffer, and rows of a part are as far apart as in the whole.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK-NOT: for pad

; Two parts of a result: operands of a product.
; CHECK-LABEL: define void @product(
; CHECK-NOT:     %q.buf
; CHECK-NOT:     %k.buf
; CHECK:         %[[K:.*]] = getelementptr inbounds float, ptr %s.buf, i64 8
; CHECK-NEXT:    %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %s.buf, <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 24>)
; CHECK-NEXT:    %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[K]], <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 24>)
define void @product(ptr noalias %x, ptr noalias %y) {
  %v = load <384 x float>, ptr %x
  %s = fmul <384 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<384 x float> %s, <2 x i32> <i32 16, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %q = call <128 x float> @llvm.tensor.pad(token %t, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 -16>, float 0.0)
  %k = call <128 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 0, i32 -8>, <2 x i32> <i32 0, i32 -8>, float 0.0)
  %qt = call token @llvm.tensor.typeinfo(<128 x float> %q, <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %kt = call token @llvm.tensor.typeinfo(<128 x float> %k, <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %p = call <256 x float> @llvm.tensor.contract(token %qt, token %kt, <1 x i32> <i32 1>, <1 x i32> <i32 1>)
  store <256 x float> %p, ptr %y
  ret void
}

; A part of memory, seen as more dimensions by a reduction and as one by a map.
; CHECK-LABEL: define void @map(
; CHECK-NOT:     alloca
; CHECK:         getelementptr inbounds float, ptr %x, i64 6
; CHECK:         ret void
define void @map(ptr noalias %x, ptr noalias %y, ptr noalias %z) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 16, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <192 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 0, i32 -6>, <2 x i32> <i32 0, i32 -6>, float 0.0)
  %s = fmul <192 x float> %p, %p
  store <192 x float> %s, ptr %y
  %pt = call token @llvm.tensor.typeinfo(<192 x float> %p, <3 x i32> <i32 16, i32 3, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  %r = call <48 x float> @llvm.tensor.reduce.add(token %pt, <3 x i32> <i32 1, i32 1, i32 4>, <3 x i32> <i32 1, i32 1, i32 1>)
  store <48 x float> %r, ptr %z
  ret void
}

; A part that is a result of the program, too: the store copies it from where it lies.
; CHECK-LABEL: define void @stored(
; CHECK-NOT:     %q.buf
; CHECK:         %[[Q:.*]] = getelementptr inbounds float, ptr %s.buf, i64 8
; CHECK-NEXT:    %[[ROWS:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[Q]], <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 24>)
; CHECK-NEXT:    call void @llvm.tensor.store.p0.v2i32(ptr %z, token %[[ROWS]], <2 x i32> <i32 0, i32 8>)
; CHECK:         %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 24>)
define void @stored(ptr noalias %x, ptr noalias %y, ptr noalias %z) {
  %v = load <384 x float>, ptr %x
  %s = fmul <384 x float> %v, %v
  %t = call token @llvm.tensor.typeinfo(<384 x float> %s, <2 x i32> <i32 16, i32 24>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %q = call <128 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 0, i32 -8>, <2 x i32> <i32 0, i32 -8>, float 0.0)
  %qt = call token @llvm.tensor.typeinfo(<128 x float> %q, <2 x i32> <i32 16, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr elementtype(float) %z, token %qt, <2 x i32> zeroinitializer)
  %p = call <256 x float> @llvm.tensor.contract(token %qt, token %qt, <1 x i32> <i32 1>, <1 x i32> <i32 1>)
  store <256 x float> %p, ptr %y
  ret void
}
