; Products in a loop over more memory than the caches hold: the next iteration's operands are prefetched between multiply-adds,
; and results larger than the last cache are stored non-temporally if C is aligned; a fence follows the loop, in each thread.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --remarks=%t.remarks | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARKS < %t.remarks
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --threads=openmp | FileCheck %s --check-prefix=TEAM
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2,avx512 | FileCheck %s --check-prefix=VERSIONS
; RUN: grep -v '^;' %s | tlx-lower - --emit=asm --target=avx512 -o - | FileCheck %s --check-prefix=ASM

; REMARKS: remark: matmul 32x32x32 float:{{.*}}; the next iteration's operands prefetched; C written by non-temporal stores
; REMARKS: remark: matmul 16x16x16 float:{{.*}}; the operands 2 iterations ahead prefetched [to-tiles]
; REMARKS: remark: matmul 16x16x16 float:{{.*}} % of peak [to-tiles]

; 30 MB each: the operands of two iterations fit L1.
; CHECK-LABEL: define internal void @tlx.nest.large(
; CHECK:         %[[BEHIND:.*]] = ptrtoint ptr %out.ptr to i64
; CHECK:         %[[GAP:.*]] = and i64 %[[BEHIND]], 63
; CHECK:         %[[ALIGNED:.*]] = icmp eq i64 %[[GAP]], 0
; CHECK:       k.loop:
; CHECK:         call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 3, i32 1)
; CHECK:         call void @llvm.prefetch.p0(ptr %{{.*}}, i32 0, i32 3, i32 1)
; CHECK:         br i1 %[[ALIGNED]], label %nontemporal, label %temporal
; CHECK:       nontemporal:
; CHECK:         store <16 x float> {{.*}}, align 64, !nontemporal
; CHECK-NOT:     align 4{{$}}
; CHECK:       temporal:
; CHECK-NOT:     nontemporal
; CHECK:       stored:
; CHECK:       batch.end:
; CHECK-NEXT:    fence seq_cst
; CHECK-NEXT:    ret void

; A line of A and a line of B in each of 16 steps, for the iteration after the next, 2 KB further on: an iteration is
; shorter than the memory latency. No non-temporal stores.
; CHECK-LABEL: define internal void @tlx.nest.middle(
; CHECK:         getelementptr i8, ptr %lhs.ptr, i64 2048
; CHECK-NEXT:    call void @llvm.prefetch.p0(
; CHECK:         getelementptr i8, ptr %rhs.ptr, i64 2048
; CHECK-NEXT:    call void @llvm.prefetch.p0(
; CHECK:         getelementptr i8, ptr %lhs.ptr, i64 2112
; CHECK-COUNT-30: call void @llvm.prefetch.p0(
; CHECK-NOT:     prefetch
; CHECK-NOT:     nontemporal
; CHECK-NOT:     fence

; Operands that fit the caches are not prefetched.
; CHECK-LABEL: define internal void @tlx.nest.small(
; CHECK-NOT:     prefetch

; TEAM-LABEL: define internal void @tlx.nest.large.part(
; TEAM:         nontemporal
; TEAM:       batch.end:
; TEAM-NEXT:    fence seq_cst
; TEAM-NEXT:    ret void

; VERSIONS-LABEL: define internal void @tlx.nest.large.avx2(
; VERSIONS:      batch.end:
; VERSIONS-NEXT:   fence seq_cst
; VERSIONS-LABEL: define internal void @tlx.nest.large.avx512(
; VERSIONS:      batch.end:
; VERSIONS-NEXT:   fence seq_cst

; Nothing is spilled, and there are no calls.
; ASM-LABEL: tlx.nest.middle:
; ASM-NOT:   call
; ASM-NOT:   rsp{{.*}}zmm
; ASM: prefetcht0 2048(
; ASM-NOT:   call
; ASM-NOT:   {{(rsp.*zmm|zmm.*rsp)}}
; ASM:       retq

define void @large(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 8000, i32 32, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 8000, i32 32, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <8192000 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<8192000 x float> %m, <3 x i32> <i32 8000, i32 32, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}

define void @middle(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 3000, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 3000, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <768000 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<768000 x float> %m, <3 x i32> <i32 3000, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}

define void @small(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 30, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 30, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <7680 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<7680 x float> %m, <3 x i32> <i32 30, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
