; --threads=openmp: a loop of few iterations is collapsed with its inner loop; a loop that stage 1 marked within one of
; the program's loops is a function that a team runs; loops around kernels with versions are shared in each version.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --threads=openmp --thread-cycles=50 --check=1 | FileCheck %s
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx2,avx512 --threads=openmp --thread-cycles=50 | FileCheck %s --check-prefix=VERSIONS

; CHECK-LABEL: define internal void @tlx.nest.steps(ptr %a, ptr %b, ptr %c) nounwind noinline {
; CHECK:         call void @tlx.nest.steps.inner(ptr %from, ptr %b, ptr %c)

; CHECK-LABEL: define internal void @tlx.nest.two.part(ptr %a, ptr %b, ptr %c, i64 %first, i64 %last)
; CHECK:         icmp slt i64 %first, %last
; CHECK:         %[[UP:.*]] = add i64 %last, 6
; CHECK-NEXT:    %[[END:.*]] = udiv i64 %[[UP]], 7
; CHECK-NEXT:    %[[START:.*]] = udiv i64 %first, 7
; CHECK:         %[[I:.*]] = phi i64 [ %[[START]], %{{.*}} ]
; CHECK:         %[[DONE:.*]] = mul i64 %[[I]], 7
; CHECK:         %[[LOW:.*]] = sub i64 %first, %[[DONE]]
; CHECK:         %[[HIGH:.*]] = sub i64 %last, %[[DONE]]
; CHECK:         %[[FROM:.*]] = select i1 %{{.*}}, i64 %[[LOW]], i64 0
; CHECK:         %[[TO:.*]] = select i1 %{{.*}}, i64 %[[HIGH]], i64 7
; CHECK:         %batch.1 = phi i64 [ %[[FROM]], %{{.*}} ]
; CHECK:         icmp slt i64 %{{.*}}, %[[TO]]
; CHECK:         icmp slt i64 %{{.*}}, %[[END]]
; CHECK-LABEL: define internal void @tlx.nest.two(
; CHECK:         call void @GOMP_parallel(ptr @tlx.nest.two.thread,
; CHECK:         call void @tlx.nest.two.part(ptr %a, ptr %b, ptr %c, i64 0, i64 21)
; CHECK-LABEL: define internal void @tlx.nest.steps.inner.part(
; CHECK-LABEL: define internal void @tlx.nest.steps.inner(
; CHECK:         call void @GOMP_parallel(ptr @tlx.nest.steps.inner.thread,

; VERSIONS-LABEL: define internal void @tlx.nest.two(
; VERSIONS:         tail call void @tlx.nest.two.avx2(
; VERSIONS:         tail call void @tlx.nest.two.avx512(
; VERSIONS-LABEL: define internal void @tlx.nest.steps.avx2(
; VERSIONS:         call void @tlx.nest.steps.avx2.inner(
; VERSIONS-LABEL: define internal void @tlx.nest.two.avx2.part(
; VERSIONS-LABEL: define internal void @tlx.nest.two.avx512.part(
; VERSIONS-LABEL: define internal void @tlx.nest.two.avx512(
; VERSIONS:         call void @GOMP_parallel(ptr @tlx.nest.two.avx512.thread,
; VERSIONS-LABEL: define internal void @tlx.nest.steps.avx512.inner(
define void @two(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <4 x i32> <i32 3, i32 7, i32 12, i32 8>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> <i32 0, i32 9, i32 0, i32 0>)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <4 x i32> <i32 3, i32 7, i32 8, i32 16>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %p = call <4032 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<4032 x float> %p, <4 x i32> <i32 3, i32 7, i32 12, i32 16>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <4 x i32> zeroinitializer)
  ret void
}

define void @steps(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %offset = mul i64 %i, 1536
  %from = getelementptr float, ptr %a, i64 %offset
  %x = call token @llvm.tensor.load(ptr elementtype(float) %from, <3 x i32> <i32 16, i32 12, i32 8>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 16, i32 8, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <3072 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<3072 x float> %p, <3 x i32> <i32 16, i32 12, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 2
  br i1 %more, label %loop, label %end

end:
  ret void
}
