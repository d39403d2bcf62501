; Where B was packed before all calls, tiles prefetch the next block of it into L2. Four row tiles read each block of
; four panels of 32 x 768 bfloats, so that each step of K prefetches a quarter of 2 KB: a line of each of eight runs,
; which begin 24 KB and five lines apart. Where only two row tiles share the work, there are sixteen runs.
; RUN: grep -v "^;" %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.128x3072x768.bf16.bf16.f32(
; CHECK:       k.loop{{[.0-9]*}}:
; CHECK:         %[[LINE:.*]] = getelementptr i8, ptr %[[NEXT:.*]], i64 %[[FIRST:.*]]
; CHECK:         call void @llvm.prefetch.p0(ptr %[[LINE]], i32 0, i32 2, i32 1)
; CHECK:         %[[SECOND:.*]] = add i64 %[[FIRST]], 24896
; CHECK:         %[[OTHER:.*]] = getelementptr i8, ptr %[[NEXT]], i64 %[[SECOND]]
; CHECK:         call void @llvm.prefetch.p0(ptr %[[OTHER]], i32 0, i32 2, i32 1)
; CHECK-COUNT-6: call void @llvm.prefetch.p0(
; CHECK-NOT:     prefetch
; CHECK:         @llvm.tensor.smma
; CHECK-NOT:     prefetch
; CHECK:         br i1
; CHECK-LABEL: define internal void @tlx.matmul.64x3072x768.bf16.bf16.f32(
; CHECK:       k.loop{{[.0-9]*}}:
; CHECK-COUNT-16: call void @llvm.prefetch.p0(
; CHECK:         @llvm.tensor.smma
; CHECK-NOT:     prefetch
; CHECK:         br i1

define void @four(ptr noalias %r, ptr noalias %p, ptr noalias readonly "tlx-constant" %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 128, i32 768>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 768, i32 3072>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <393216 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<393216 x float> %c, <2 x i32> <i32 128, i32 3072>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @two(ptr noalias %r, ptr noalias %p, ptr noalias readonly "tlx-constant" %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 768>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 768, i32 3072>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <196608 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<196608 x float> %c, <2 x i32> <i32 64, i32 3072>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
