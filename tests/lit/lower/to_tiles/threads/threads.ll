; --threads=openmp: a kernel computes some of its tiles; each thread of a team has a rectangle, split into jobs, and
; steals jobs of other threads when it is done. Small products, and those inside a parallel region, run on one thread.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --threads=openmp | FileCheck %s
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --threads=openmp | FileCheck %s --check-prefix=LOWERED
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=ALONE
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --threads=openmp --thread-cycles=100000000 | FileCheck %s --check-prefix=ALONE
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --threads=openmp --thread-cycles=0 | FileCheck %s --check-prefix=ALL

; ALONE-NOT: GOMP_parallel

; The large product is called as without threads:
; CHECK-LABEL: define void @large(
; CHECK: call void @[[LARGE:tlx.matmul.256x256x256.f32.f32.f32]](ptr %c, ptr %a, ptr %b)
; The small one is not threaded:
; CHECK-LABEL: define void @small(
; CHECK: call void @[[SMALL:tlx.matmul.8x32x16.f32.f32.f32]](ptr %c, ptr %a, ptr %b)

; CHECK: define internal void @[[LARGE]].part(ptr noalias %c, ptr %a, ptr %b, i64 %row, i64 %row.end, i64 %column, i64 %column.end) {{.*}}"tlx-stage"="tiles"
; CHECK: sub i64 %column.end, %column

; CHECK-LABEL: define internal void @tlx.matmul.256x256x256.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b)
; CHECK: %in.parallel = call i32 @omp_in_parallel()
; CHECK: %max.threads = call i32 @omp_get_max_threads()
; CHECK: %[[FREE:.*]] = icmp eq i32 %in.parallel, 0
; CHECK: %team = select i1 %[[FREE]], i32 %{{.*}}, i32 1
; CHECK: br i1 %{{.*}}, label %parallel, label %serial
; CHECK: parallel:
; Each work-stealing counter has its own cache line:
; CHECK: counter.loop:
; CHECK: %[[PLACE:.*]] = mul i64 %counter, 8
; CHECK-NEXT: %[[COUNTER:.*]] = getelementptr inbounds i64, ptr %counters, i64 %[[PLACE]]
; CHECK-NEXT: store i64 0, ptr %[[COUNTER]]
; CHECK: call void @GOMP_parallel(ptr @[[LARGE]].thread, ptr %shared, i32 %team, i32 0)
; CHECK: serial:
; CHECK-NEXT: call void @[[LARGE]].part(ptr %c, ptr %a, ptr %b, i64 0, i64 {{[0-9]+}}, i64 0, i64 {{[0-9]+}})

; CHECK: define internal void @[[LARGE]].thread.share(
; CHECK: victim.loop:
; CHECK: claim:
; CHECK-NEXT: atomicrmw add ptr %{{.*}}, i64 1 monotonic
; CHECK: run:
; CHECK: call void @[[LARGE]].part(
; CHECK: define internal void @[[LARGE]].thread(ptr %data)
; CHECK: call i32 @omp_get_thread_num()
; CHECK: call i32 @omp_get_num_threads()
; CHECK: call void @[[LARGE]].thread.share(

; CHECK: define internal void @[[SMALL]](ptr noalias %c, ptr %a, ptr %b) {{.*}}"tlx-stage"="tiles"
; CHECK-NOT: GOMP_parallel(ptr @[[SMALL]]

; The features stay with the kernel: the functions around it are for any machine.
; LOWERED: define internal void @tlx.matmul.256x256x256.f32.f32.f32.part({{.*}}"target-features"
; LOWERED: define internal void @tlx.matmul.256x256x256.f32.f32.f32({{[^"]*}} {
; LOWERED: define internal void @tlx.matmul.256x256x256.f32.f32.f32.thread({{[^"]*}} {

; Even if all work is worth a thread, a single tile is not split:
; ALL: call void @GOMP_parallel(ptr @tlx.matmul.256x256x256.f32.f32.f32.thread
; ALL-NOT: GOMP_parallel(ptr @tlx.matmul.8x32x16

define void @large(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <65536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<65536 x float> %m, <2 x i32> <i32 256, i32 256>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @small(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
