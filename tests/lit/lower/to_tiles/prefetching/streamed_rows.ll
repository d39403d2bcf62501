; A product of few rows that streams B prefetches the rows it reads next, if B exceeds half of L2: each tile of 16 rows by
; 256 columns prefetches the lines at the same columns of the 16 rows below, a row of 1536 bytes after the other. A B
; that L2 holds is not prefetched.
; RUN: grep -v "^;" %s > %t.ll && tlx-lower %t.ll --target=avx512 --stop-after=to-tiles --remarks=%t.txt -o - | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.txt

; REMARK: matmul 1x768x3072 bfloat -> float: {{.*}}B of the next tiles prefetched
; REMARK-NOT: matmul 1x768x128 {{.*}}prefetched

; CHECK-LABEL: define internal void @tlx.matmul.1x768x3072.bf16.bf16.f32(
; CHECK:       j.loop{{[.0-9]*}}:
; CHECK:         %[[ROW:.*]] = add i64 %{{.*}}, 16
; CHECK:         %[[START:.*]] = mul i64 %[[ROW]], 768
; CHECK:         %[[PLACE:.*]] = add i64 %[[START]], %{{.*}}
; CHECK:         %[[BYTES:.*]] = mul i64 %[[PLACE]], 2
; CHECK:         %[[LINE:.*]] = getelementptr i8, ptr %b, i64 %[[BYTES]]
; CHECK:         call void @llvm.prefetch.p0(ptr %[[LINE]], i32 0, i32 2, i32 1)
; CHECK:         %[[NEXT:.*]] = add i64 %[[BYTES]], 64
; CHECK:         %[[OTHER:.*]] = getelementptr i8, ptr %b, i64 %[[NEXT]]
; CHECK:         call void @llvm.prefetch.p0(ptr %[[OTHER]], i32 0, i32 2, i32 1)
; CHECK-COUNT-126: call void @llvm.prefetch.p0(
; CHECK-NOT:     prefetch
; CHECK:         br i1
; CHECK-LABEL: define internal void @tlx.matmul.1x768x128.bf16.bf16.f32(
; CHECK-NOT:     prefetch
; CHECK:         ret void

define void @far(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 1, i32 3072>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 3072, i32 768>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <768 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<768 x float> %c, <2 x i32> <i32 1, i32 768>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @near(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 1, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 128, i32 768>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <768 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<768 x float> %c, <2 x i32> <i32 1, i32 768>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
