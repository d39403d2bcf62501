; B is packed once for all row blocks of an iteration that a thread runs, into memory of its own, although B's address
; is computed in the inner loop.
;
; RUN: grep -v "^;" %s | tlx-lower - -o - --target=avx2 --start-after=to-2d --stop-after=to-tiles --threads=openmp | FileCheck %s

; CHECK-LABEL: define internal void @tlx.nest.f.part(
; CHECK:         %[[HEAP:.*]] = call noalias ptr @malloc(
; CHECK:       columns:
; CHECK:         %[[B:.*]] = getelementptr inbounds bfloat, ptr %b, i64 %b.offset
; CHECK:         call void @tlx.matmul.16x32x2048.bf16.bf16.f32.pack(ptr %[[PANELS:.*]], ptr %[[B]])
; CHECK:       rows:
; CHECK:         call void @tlx.matmul.16x32x2048.bf16.bf16.f32(ptr %{{.*}}, ptr %{{.*}}, ptr %[[PANELS]])
define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) "tlx-stage"="2d" {
entry:
  br label %columns

columns:
  %j = phi i64 [ 0, %entry ], [ %j.next, %columns.end ]
  %b.offset = mul i64 %j, 65536
  %c.offset = mul i64 %j, 16384
  br label %rows

rows:
  %i = phi i64 [ 0, %columns ], [ %i.next, %rows ]
  %a.offset = mul i64 %i, 32768
  %block = mul i64 %i, 512
  %at = add i64 %c.offset, %block
  %lhs.ptr = getelementptr inbounds bfloat, ptr %a, i64 %a.offset
  %rhs.ptr = getelementptr inbounds bfloat, ptr %b, i64 %b.offset
  %out.ptr = getelementptr inbounds float, ptr %c, i64 %at
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %lhs.ptr, <2 x i32> <i32 16, i32 2048>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 2048>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %rhs.ptr, <2 x i32> <i32 2048, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 32>)
  %p = call <512 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<512 x float> %p, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %out.ptr, token %t, <2 x i32> <i32 0, i32 32>)
  %i.next = add i64 %i, 1
  %more.rows = icmp slt i64 %i.next, 32
  br i1 %more.rows, label %rows, label %columns.end, !tlx.independent !{}

columns.end:
  %j.next = add i64 %j, 1
  %more.columns = icmp slt i64 %j.next, 64
  br i1 %more.columns, label %columns, label %end, !tlx.independent !{}

end:
  ret void
}
