; Many threads pack B once: the team packs, and then multiplies by panels that all threads read. A few threads, and one, pack
; what they read themselves, into memory that they keep between jobs. So does every thread on a matrix unit.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --threads=openmp | FileCheck %s
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=amx --stop-after=to-tiles --threads=openmp | FileCheck %s --check-prefix=AMX

; CHECK: define internal void @[[K:tlx.matmul.2048x2048x2048.f32.f32.f32]].part({{.*}}, i64 %row, i64 %row.end, i64 %column, i64 %column.end, ptr %memory, i64 %packed)
; CHECK-NOT: malloc
; CHECK: %[[FRESH:.*]] = icmp eq i64 %packed, 0
; CHECK-NEXT: br i1 %[[FRESH]], label %pack, label %pack.end
; CHECK: pack:
; CHECK: call void @llvm.tensor.store.
; CHECK: pack.end:
; CHECK-NOT: malloc
; CHECK: define internal void @[[K]].pack.part(ptr noalias %panels, ptr %b, i64 %row, i64 %row.end, i64 %column, i64 %column.end)
; CHECK: icmp slt i64 %column, %column.end
; CHECK: %jp = phi i64
; CHECK: define internal void @[[K]].part.1(
; CHECK-NOT: malloc
; CHECK: define internal void @[[K]](ptr noalias %c, ptr %a, ptr %b)
; CHECK: icmp uge i32 %team, 4
; CHECK: large.team:
; CHECK-NEXT: %[[PANELS:.*]] = call noalias ptr @malloc(i64 16777280)
; CHECK: allocated:
; CHECK: call void @GOMP_parallel(ptr @[[K]].packer, {{.*}}, i32 %team, i32 0)
; CHECK: call void @GOMP_parallel(ptr @[[K]].multiplier, {{.*}}, i32 %team, i32 0)
; CHECK-NEXT: call void @free(ptr %[[PANELS]])
; CHECK: small.team:
; CHECK: parallel:
; CHECK: call void @GOMP_parallel(ptr @[[K]].thread, {{.*}}, i32 %team, i32 0)
; CHECK: serial:
; CHECK-NEXT: %[[OWN:.*]] = call noalias ptr @malloc(
; CHECK: call void @[[K]].part({{.*}}, i64 0, i64 {{[0-9]+}}, i64 0, i64 {{[0-9]+}}, ptr %{{.*}}, i64 0)
; CHECK-NEXT: call void @free(ptr %[[OWN]])
; CHECK: define internal void @[[K]].packer.share(
; CHECK: call void @[[K]].pack.part(
; CHECK: define internal void @[[K]].multiplier.share(
; CHECK: call void @[[K]].part.1(

; AMX: define internal void @[[B:tlx.matmul.2048x2048x2048.bf16.bf16.f32]].part(
; AMX-NOT: malloc
; The tiles of a job are one loop, in which each stores the sums of the previous one:
; AMX: pack.end:
; AMX-NEXT: icmp slt i64 %row, %row.end
; AMX: rows:
; AMX: t.loop:
; AMX: phi <1024 x float> [ zeroinitializer, %rows ], [ %{{.*}}, %k.end ]
; AMX: udiv
; AMX: call void @llvm.tensor.store.
; AMX: k.loop:
; AMX: t.end:
; AMX: call void @llvm.tensor.store.
; AMX-NOT: ir.loop
; AMX: define internal void @[[B]](
; AMX: serial:
; AMX-NEXT: {{.*}}call noalias ptr @malloc(
; AMX: define internal void @[[B]].thread.share(
; AMX: %[[PANELS:.*]] = call noalias ptr @malloc(
; AMX: store i64 -1, ptr %cached.panel
; AMX: atomicrmw add
; AMX: call void @free(ptr %[[PANELS]])
; AMX-NOT: bf16.f32.packer

; A thread's jobs receive its state: the number of the first packed panel.
; AMX: define internal void @tlx.nest.[[B]].thread.share(
; AMX: %[[HELD:.*]] = load i64, ptr %cached.panel
; AMX-NEXT: %[[SAME:.*]] = icmp eq i64 %[[HELD]], %[[FIRST:.*]]
; AMX-NEXT: %packed = zext i1 %[[SAME]] to i64
; AMX-NEXT: store i64 %[[FIRST]], ptr %cached.panel
; AMX-NEXT: call void @[[B]].part({{.*}}, i64 %[[FIRST]], i64 %{{.*}}, ptr %{{.*}}, i64 %packed)

define void @vector(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 2048, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 2048, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <4194304 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<4194304 x float> %p, <2 x i32> <i32 2048, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @tiles(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %x, <2 x i32> <i32 2048, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %y, <2 x i32> <i32 2048, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <4194304 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<4194304 x float> %p, <2 x i32> <i32 2048, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
