; One head of attention: the loop is over rows, and each iteration reads keys and values as a whole. Of the scores, only
; 256 rows are in memory; queries and results, 1 MiB each, are too small to begin the search for such a loop.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --remarks -o - 2>&1 | FileCheck %s

; CHECK: <stdin>:[[#]]:3: remark: fused matmul, exp, matmul into one loop of 16 iterations: of 64.0 MiB between them, 4.0 MiB are in memory at a time [to-2d]
; CHECK-LABEL: define void @rows(
; CHECK:       part.loop:
; CHECK-NEXT:    %part = phi i64 [ 0, %allocated ], [ %part.next, %part.loop ]
; CHECK:         %[[Q:.*]] = getelementptr inbounds float, ptr %q, i64
; CHECK-NOT:     getelementptr inbounds float, ptr %k
; CHECK:         call <1048576 x float> @llvm.tensor.matmul.v1048576f32
; CHECK:         call <1048576 x float> @llvm.tensor.exp.v1048576f32
; CHECK-NOT:     getelementptr inbounds float, ptr %v
; CHECK:         call <16384 x float> @llvm.tensor.matmul.v16384f32
; CHECK:         br i1 %{{.*}}, label %part.loop, label %part.end, !tlx.independent !{}
define void @rows(ptr noalias %q, ptr noalias %k, ptr noalias %v, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> <i32 4096, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %k, <2 x i32> <i32 64, i32 4096>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %s = call <16777216 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<16777216 x float> %s, <2 x i32> <i32 4096, i32 4096>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %e = call <16777216 x float> @llvm.tensor.exp(token %t)
  %u = call token @llvm.tensor.typeinfo(<16777216 x float> %e, <2 x i32> <i32 4096, i32 4096>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %c = call token @llvm.tensor.load(ptr elementtype(float) %v, <2 x i32> <i32 4096, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <262144 x float> @llvm.tensor.matmul(token %u, token %c)
  %r = call token @llvm.tensor.typeinfo(<262144 x float> %p, <2 x i32> <i32 4096, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %r, <2 x i32> zeroinitializer)
  ret void
}
