; --threads=openmp: maps, copies and reductions are split into equal parts that share a kernel, and a remainder.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --threads=openmp | FileCheck %s
; RUN: grep -v "^;" %s | tlx-lower - -o /dev/null --target=avx512 --threads=openmp --check=2
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx512 | FileCheck %s --check-prefix=ALONE

; ALONE-NOT: GOMP_parallel

; Rows of 1024 elements, each summed by one thread:
; CHECK-LABEL: define void @rows(
; CHECK: call void @[[ROWS:tlx.reduce.add.rows.1003x1024.f32]](ptr %y, ptr %x)
; CHECK: define internal void @[[PART:tlx.reduce.add.rows.8x1024.f32]](ptr noalias %to, ptr %x0) {{.*}}"tlx-stage"="tiles"
; CHECK: define internal void @[[REST:tlx.reduce.add.rows.3x1024.f32]](ptr noalias %to, ptr %x0) {{.*}}"tlx-stage"="tiles"
; CHECK: define internal void @[[ROWS]].part(ptr noalias %to, ptr %x0, i64 %part, i64 %part.end)
; CHECK: call void @tlx.nest.[[ROWS]].part(
; CHECK: %[[LAST:.*]] = icmp eq i64 %part.end, 126
; CHECK: br i1 %[[LAST]], label %rest, label %done
; CHECK: rest:
; CHECK: call void @[[REST]](
; CHECK: define internal void @[[ROWS]](ptr noalias %to, ptr %x0) nounwind noinline
; CHECK: call i32 @omp_in_parallel()
; CHECK: call void @GOMP_parallel(ptr @[[ROWS]].thread, ptr %shared, i32 %team, i32 0)
; CHECK: serial:
; CHECK-NEXT: call void @[[ROWS]].part(ptr %to, ptr %x0, i64 0, i64 126)
; CHECK: define internal void @[[ROWS]].thread.share(
; CHECK: call void @[[ROWS]].part(
; CHECK: define internal void @tlx.nest.[[ROWS]].part(
; CHECK: call void @[[PART]](

define void @rows(ptr noalias %y, ptr %x) {
  %v = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 1003, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %s = call <1003 x float> @llvm.tensor.reduce.add(token %v, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 1, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<1003 x float> %s, <2 x i32> <i32 1003, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <2 x i32> zeroinitializer)
  ret void
}
