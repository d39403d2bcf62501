; An image of 1.7 MB is copied with channels innermost in parts that stay in L2: the 15 rows that 7 rows of the result
; read, each part into the same buffer. Filters are copied once. Threads cannot share a part: all is copied first.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --threads=openmp -o - | FileCheck %s --check-prefix=THREADS

; CHECK-LABEL: define void @rows(
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %w.buf,
; CHECK:       part.loop:
; CHECK-NEXT:    %part = phi i64 [ 0, %{{.*}} ], [ %part.next, %batch.end ]
; CHECK-NEXT:    %[[X:.*]] = mul i64 %part, 812
; CHECK-NEXT:    %[[Y:.*]] = mul i64 %part, 196
; CHECK-NEXT:    %[[FROM:.*]] = getelementptr inbounds float, ptr %x, i64 %[[X]]
; CHECK-NEXT:    %{{.*}} = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[FROM]], <2 x i32> <i32 128, i32 870>, {{.*}}, <2 x i32> <i32 0, i32 3364>)
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %last.buf,
; CHECK:       batch.loop:
; CHECK:         %[[OFFSET:.*]] = add i64 %[[Y]], %{{.*}}
; CHECK:         %lhs.ptr = getelementptr inbounds float, ptr %last.buf,
; CHECK:         %out.ptr = getelementptr inbounds float, ptr %y, i64 %[[OFFSET]]
; CHECK:         icmp slt i64 %batch.next, 7
; CHECK:         icmp slt i64 %part.next, 4
; CHECK-NEXT:    br i1 %{{.*}}, label %part.loop, label %part.end{{$}}

; THREADS-NOT:   part.loop
; THREADS:       icmp slt i64 %batch.next, 28
define void @rows(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 128, i32 58, i32 58>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 128, i32 128, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <100352 x float> @llvm.tensor.convolution(token %a, token %b, <2 x i32> <i32 2, i32 2>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %t = call token @llvm.tensor.typeinfo(<100352 x float> %c, <4 x i32> <i32 1, i32 128, i32 28, i32 28>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <4 x i32> zeroinitializer)
  ret void
}
