; Adjacent columns an odd number of elements apart are blended from whole registers and permuted: 133 x 9
; bfloats are 4 times 9 registers of 32, and 5 rows that are transposed.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=avx512 --check -o %t.o.ll
; RUN: tlx-lower %t.ll --target=avx512 --stop-after=to-tiles -o - | FileCheck %s
; RUN: FileCheck %s --check-prefix=LOWERED < %t.o.ll
; RUN: tlx-lower %t.ll --target=amx --check -o %t.amx.ll
; RUN: FileCheck %s --check-prefix=BYTES < %t.amx.ll
; RUN: tlx-lower %t.ll --target=amx --emit=asm -O2 -o - | FileCheck %s --check-prefix=ASM
; RUN: tlx-lower %t.ll --target=avx2 --check -o - | FileCheck %s --check-prefix=WITHOUT

; CHECK-LABEL: define internal void @tlx.transpose.133x9.bf16(
; CHECK:         c.loop:
; CHECK-COUNT-9: call <32 x bfloat> @llvm.tensor.tovector
; CHECK-COUNT-8: %merged{{.*}} = shufflevector <32 x bfloat>
; CHECK:         %column = shufflevector <32 x bfloat> {{.*}}, <32 x bfloat> undef, <32 x i32> <i32 0, i32 9, i32 18, i32 27, i32 4, i32 13,
; CHECK:         call void @llvm.tensor.store
; CHECK:         icmp slt i64 %c.next, 4
; CHECK:         call token @llvm.tensor.load{{.*}}, <2 x i32> <i32 16, i32 {{[0-9]+}}>, <2 x i32> <i32 1, i32 0>
; LOWERED-LABEL: define internal void @tlx.transpose.133x9.bf16(
; LOWERED-COUNT-9: load <32 x i16>
; LOWERED-COUNT-81: shufflevector <32 x i16>
; ASM-LABEL:   tlx.transpose.133x9.bf16:
; ASM-COUNT-9: {{vpermw|vpermt2w|vpermi2w}}
; WITHOUT-NOT: %merged
define void @taps(ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 133, i32 9>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <1197 x bfloat> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<1197 x bfloat> %v, <2 x i32> <i32 9, i32 133>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  ret void
}

; With 3 columns of 5, the last register is not read completely.
; LOWERED-LABEL: define internal void @tlx.transpose.33x3.f32(
; LOWERED:       call <16 x float> @llvm.masked.load
; LOWERED-COUNT-15: shufflevector <16 x float>
define void @floats(ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 33, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 5>)
  %v = call <99 x float> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<99 x float> %v, <2 x i32> <i32 3, i32 33>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  ret void
}

; Bytes need VPERMB, which AVX-512 alone does not have.
; LOWERED-LABEL: define internal void @tlx.transpose.130x7.i8(
; LOWERED-NOT:   shufflevector <64 x i8>
; BYTES-LABEL:   define internal void @tlx.transpose.130x7.i8(
; BYTES-COUNT-49: shufflevector <64 x i8>
define void @bytes(ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 130, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <910 x i8> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<910 x i8> %v, <2 x i32> <i32 7, i32 130>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  ret void
}

; 7 columns 15 apart occupy 14 of 15 registers: the last one has none of them and is not read.
; LOWERED-LABEL: define internal void @tlx.transpose.8x7.i64(
; LOWERED-COUNT-14: {{load <8 x i64>|llvm.masked.load.v8i64}}
; LOWERED-NOT:   {{load <8 x i64>|llvm.masked.load.v8i64}}
; LOWERED:       ret void
define void @wide_gap(ptr noalias %p, ptr noalias %q) {
  %x = call token @llvm.tensor.load(ptr elementtype(i64) %p, <2 x i32> <i32 8, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 15>)
  %v = call <56 x i64> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<56 x i64> %v, <2 x i32> <i32 7, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %q, token %t, <2 x i32> zeroinitializer)
  ret void
}
