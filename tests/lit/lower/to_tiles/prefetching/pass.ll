; Few rows are multiplied by a B beyond L2 in passes over K. Each step along K of each tile prefetches a share of the
; rows that the next pass reads, contiguously; the last pass prefetches its own rows, as no rows follow.
;
;     1 MB of L2: passes of 86 and, at the end, 78 rows of 4 KB; 2 row tiles x 22 panels x 86 steps share 344 KB:
;     94 bytes, two lines, each
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --remarks=%t.remarks | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARKS < %t.remarks
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --threads=openmp | FileCheck %s --check-prefix=TEAM
; RUN: grep -v '^;' %s | tlx-lower - --emit=asm --target=avx512 -o - | FileCheck %s --check-prefix=ASM

; REMARKS: remark: matmul 16x1024x1024 float:{{.*}}, nothing packed, {{.*}}; B prefetched 8 steps ahead; B of the next pass prefetched

; CHECK-LABEL: define internal void @tlx.matmul.16x1024x1024.f32.f32.f32(
; CHECK-NOT:     malloc
; CHECK:         %[[FIRST:.*]] = getelementptr inbounds i8, ptr %b, i64 352256
; CHECK:       k.loop:
; CHECK:         %[[STEP:.*]] = mul i64 %k, 94
; CHECK-NEXT:    %[[SHARE:.*]] = add i64 %{{.*}}, %[[STEP]]
; CHECK-NEXT:    %[[LINE:.*]] = getelementptr i8, ptr %[[FIRST]], i64 %[[SHARE]]
; CHECK-NEXT:    call void @llvm.prefetch.p0(ptr %[[LINE]], i32 0, i32 2, i32 1)
; CHECK-NEXT:    %[[NEXT:.*]] = add i64 %[[SHARE]], 64
; CHECK-NEXT:    %[[LINE_1:.*]] = getelementptr i8, ptr %[[FIRST]], i64 %[[NEXT]]
; CHECK-NEXT:    call void @llvm.prefetch.p0(ptr %[[LINE_1]], i32 0, i32 2, i32 1)
; CHECK:       pc.loop:
; CHECK:         %[[BEHIND:.*]] = add i64 %{{.*}}, 86
; CHECK-NEXT:    %[[FEWER:.*]] = icmp ult i64 %[[BEHIND]], 938
; CHECK-NEXT:    %[[WHERE:.*]] = select i1 %[[FEWER]], i64 %[[BEHIND]], i64 938
; CHECK-NEXT:    %[[BYTES:.*]] = mul i64 %[[WHERE]], 4096
; CHECK-NEXT:    getelementptr inbounds i8, ptr %b, i64 %[[BYTES]]

; A share of the panels reads a part of each row.
; TEAM-NOT:      i32 0, i32 2, i32 1)

; ASM-COUNT-24:  vfmadd
; ASM:           prefetcht0
; ASM-NOT:       vmov
; ASM:           prefetcht1
; ASM-NEXT:      prefetcht1

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 16, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16384 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16384 x float> %m, <2 x i32> <i32 16, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
