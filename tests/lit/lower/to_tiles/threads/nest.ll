; --threads=openmp: many small products in a loop are shared by its iterations, and the kernel runs on one thread.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --threads=openmp | FileCheck %s
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --threads=openmp --stop-after=to-2d | FileCheck %s --check-prefix=MARK
; RUN: grep -v "^;" %s | tlx-lower - -o /dev/null --target=generic --threads=openmp --thread-cycles=50 --check=1

; MARK: br i1 %{{.*}}, label %batch.loop, label %batch.end, !tlx.independent !{}

; CHECK-LABEL: define void @batch(
; CHECK-NEXT: call void @tlx.nest.batch(ptr %a, ptr %b, ptr %c)
; CHECK: define internal void @tlx.nest.batch.part(ptr %a, ptr %b, ptr %c, i64 %first, i64 %last) {{.*}}"target-features"
; CHECK: %[[RUNS:.*]] = icmp slt i64 %first, %last
; CHECK: br i1 %[[RUNS]], label %batch.loop, label %batch.end
; CHECK: %batch = phi i64 [ %first, %{{.*}} ]
; CHECK: icmp slt i64 %batch.next, %last
; CHECK-NOT: tlx.independent
; CHECK: define internal void @tlx.nest.batch(ptr %a, ptr %b, ptr %c) nounwind noinline {
; CHECK: call i32 @omp_in_parallel()
; CHECK: call void @GOMP_parallel(ptr @tlx.nest.batch.thread, ptr %shared, i32 %team, i32 0)
; CHECK: call void @tlx.nest.batch.part(ptr %a, ptr %b, ptr %c, i64 0, i64 200)
; CHECK: define internal void @tlx.nest.batch.thread.share(
; CHECK: call void @tlx.nest.batch.part(
; CHECK: define internal void @tlx.nest.batch.thread(ptr %data)
; CHECK: call void @tlx.nest.batch.thread.share(

define void @batch(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 200, i32 24, i32 8>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 200, i32 8, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %p = call <76800 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<76800 x float> %p, <3 x i32> <i32 200, i32 24, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
