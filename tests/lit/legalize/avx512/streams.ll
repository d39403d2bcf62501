; A row times a matrix of bytes: four rows of B are interleaved within 128-bit lanes, which spreads adjacent columns over
; four registers; their order is restored once, when the sums are complete. Signed bytes of B become unsigned, and 128
; times the sum of A is subtracted. A register of B costs its load, an xor, two shuffles and one dot product.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=TILES
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --emit=asm | FileCheck %s --check-prefix=ASM
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --remarks=%t.remarks
; RUN: FileCheck %s --check-prefix=REMARKS < %t.remarks

; REMARKS: B read once, unpacked, 16 rows at a time

; TILES: %[[ROWS:.*]] = xor <1024 x i8> %b.rows, <
; TILES-NEXT: %[[LAID:.*]] = call token @llvm.tensor.typeinfo{{.*}}(<1024 x i8> %[[ROWS]], <5 x i32> <i32 4, i32 4, i32 4, i32 4, i32 4>
; TILES-NEXT: %[[DEALT:.*]] = call <1024 x i8> @llvm.tensor.reshape.permute{{.*}}(token %[[LAID]], <5 x i32> <i32 0, i32 1, i32 3, i32 2, i32 4>, <2 x i32> <i32 4, i32 256>)
; TILES: call <256 x i32> @llvm.tensor.summa
; TILES: finish.loop:
; TILES: call <256 x i32> @llvm.tensor.reshape.permute{{.*}}<5 x i32> <i32 0, i32 1, i32 3, i32 2, i32 4>, <2 x i32> <i32 1, i32 256>)

; CHECK: j.loop:
; CHECK: %[[LOW:.*]] = shufflevector <64 x i8> %{{.*}}, <64 x i8> %{{.*}}, <64 x i32> <i32 0, i32 64, i32 1, i32 65,
; CHECK: call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(

; ASM: vpunpcklbw
; ASM-COUNT-127: {{vpunpck[lh]bw}}
; ASM-NOT: {{vpunpck|vpshufb|vpermb|vmovdqu64 [0-9]*\(%rsp\), %zmm}}
; ASM: ret

define void @f(ptr noalias %c, ptr noalias %a, ptr noalias %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x i32> %m, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
