; Filters of 2.3 MB are copied 64 at a time, inside the loop over them: all rows of the result read a copy of 576 KB,
; which stays in L2. Threads cannot share such a copy: with threads, all filters are copied first.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --threads=openmp -o - | FileCheck %s --check-prefix=THREADS
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 --remarks -o %t 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: copy of 576.0 KiB of operand w, because its rows and columns are both strided in memory
; CHECK-LABEL: define void @parts(
; CHECK:         %w.heap = call noalias ptr @malloc(i64 589888)
; CHECK:       part.loop:
; CHECK-NEXT:    %part = phi i64 [ 0, %{{.*}} ], [ %part.next, %batch.end ]
; CHECK-NEXT:    %[[W:.*]] = mul i64 %part, 147456
; CHECK-NEXT:    %[[Y:.*]] = mul i64 %part, 12544
; CHECK-NEXT:    %[[FROM:.*]] = getelementptr inbounds float, ptr %w, i64 %[[W]]
; CHECK-NEXT:    %{{.*}} = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[FROM]], <2 x i32> <i32 64, i32 2304>,
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %w.buf,
; CHECK:       batch.loop:
; CHECK:         %[[OFFSET:.*]] = add i64 %[[Y]], %{{.*}}
; CHECK:         %out.ptr = getelementptr inbounds float, ptr %y, i64 %[[OFFSET]]
; CHECK:         %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %w.buf,
; CHECK:         br i1 %{{.*}}, label %batch.loop, label %batch.end, !tlx.independent
; CHECK:         br i1 %{{.*}}, label %part.loop, label %part.end{{$}}

; THREADS:       %w.heap = call noalias ptr @malloc(i64 2359360)
; THREADS-NOT:   part.loop
define void @parts(ptr noalias %x, ptr noalias %w, ptr noalias %y) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <4 x i32> <i32 1, i32 256, i32 16, i32 16>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %w, <4 x i32> <i32 256, i32 256, i32 3, i32 3>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer, <4 x i32> zeroinitializer)
  %c = call <50176 x float> @llvm.tensor.convolution(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<50176 x float> %c, <4 x i32> <i32 1, i32 256, i32 14, i32 14>, <4 x i32> <i32 0, i32 1, i32 2, i32 3>, <4 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <4 x i32> zeroinitializer)
  ret void
}
