; A matrix unit's products in a loop over more memory than the caches hold: the next iteration's operands are prefetched after
; the tile products, and sums pass through scratch memory, from which vectors write them by non-temporal stores if C is
; aligned.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --remarks=%t.remarks | FileCheck %s
; RUN: FileCheck %s --check-prefix=REMARKS < %t.remarks
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --emit=asm -o - | FileCheck %s --check-prefix=ASM

; REMARKS: remark: matmul 32x32x32 bfloat -> float:{{.*}}; the next iteration's operands prefetched; C written by non-temporal stores

; CHECK-LABEL: define internal void @tlx.nest.large(
; CHECK:         call void @llvm.x86.tdpbf16ps(i8
; CHECK-COUNT-16: call void @llvm.prefetch.p0(
; CHECK:         call void @llvm.x86.tdpbf16ps(i8
; CHECK-COUNT-16: call void @llvm.prefetch.p0(
; CHECK:         call void @llvm.x86.tdpbf16ps(i8
; CHECK-COUNT-16: call void @llvm.prefetch.p0(
; CHECK:         call void @llvm.x86.tdpbf16ps(i8
; CHECK-COUNT-16: call void @llvm.prefetch.p0(
; CHECK-NOT:     prefetch
; CHECK-COUNT-4: call void @llvm.x86.tilestored64(i8 {{[0-7]}}, ptr %{{.*}}, i64 128)
; CHECK:       copy.loop:
; CHECK:         br i1 %{{.*}}, label %nontemporal{{.*}}, label %temporal
; CHECK-COUNT-8: load <16 x float>
; CHECK-COUNT-8: store <16 x float> {{.*}}, align 64, !nontemporal
; CHECK-NOT:     tilestored
; CHECK:       batch.end:
; CHECK-NEXT:    fence seq_cst

; Tiles are configured once; nothing is called in the loop.
; ASM-LABEL: tlx.nest.large:
; ASM:       ldtilecfg
; ASM-NOT:   {{ldtilecfg|call}}
; ASM-COUNT-64: prefetcht0
; ASM-NOT:   {{ldtilecfg|call}}
; ASM:       vmovntps
; ASM-NOT:   {{ldtilecfg|call}}
; ASM:       tilerelease
define void @large(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <3 x i32> <i32 8000, i32 32, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 8000, i32 32, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <8192000 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<8192000 x float> %m, <3 x i32> <i32 8000, i32 32, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
