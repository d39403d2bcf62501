; Sums of adjacent products in a row: separated into as many registers as there are neighbours, then added. If the
; target has an instruction for it, that multiplies, adds, and accumulates; no other instruction is left.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --check-prefix=WORDS --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --mattr=+avxvnniint8 | FileCheck %s --check-prefix=BYTES --implicit-check-not=llvm.tensor.
;
; CHECK-LABEL: define void @bytes(
; CHECK: %[[A:.*]] = load <4 x i32>
; CHECK: %[[X:.*]] = mul <4 x i32>
; CHECK-COUNT-4: shufflevector <4 x i32> %{{.*}}, <4 x i32> {{.*}}, <4 x i32>
; CHECK-COUNT-4: add <4 x i32>
; CHECK: store <4 x i32>
;
; WORDS-LABEL: define void @bytes(
; WORDS-COUNT-4: call <8 x i32> @llvm.x86.avx2.pmadd.wd(
; WORDS-LABEL: define void @words(
; WORDS-NOT: mul
; WORDS: call <8 x i32> @llvm.x86.avx2.pmadd.wd(
; WORDS-NEXT: add <8 x i32>
; WORDS-NEXT: store <8 x i32>
;
; BYTES-LABEL: define void @bytes(
; BYTES-NOT: mul
; BYTES: call <8 x i32> @llvm.x86.avx2.vpdpbssd.256(
; BYTES-NEXT: store <8 x i32>

define void @bytes(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %tc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %ta = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %tb = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %sum = call <8 x i32> @llvm.tensor.tovector(token %tc)
  %va = call <32 x i8> @llvm.tensor.tovector(token %ta)
  %vb = call <32 x i8> @llvm.tensor.tovector(token %tb)
  %xa = sext <32 x i8> %va to <32 x i32>
  %xb = sext <32 x i8> %vb to <32 x i32>
  %p = mul <32 x i32> %xa, %xb
  %t = call token @llvm.tensor.typeinfo(<32 x i32> %p, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %s = call <8 x i32> @llvm.tensor.reduce.add(token %t, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 1, i32 4>)
  %n = add <8 x i32> %sum, %s
  %r = call token @llvm.tensor.typeinfo(<8 x i32> %n, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %r, <2 x i32> <i32 0, i32 0>)
  ret void
}

define void @words(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %tc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %ta = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %tb = call token @llvm.tensor.load(ptr elementtype(i16) %b, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %sum = call <8 x i32> @llvm.tensor.tovector(token %tc)
  %va = call <16 x i16> @llvm.tensor.tovector(token %ta)
  %vb = call <16 x i16> @llvm.tensor.tovector(token %tb)
  %xa = sext <16 x i16> %va to <16 x i32>
  %xb = sext <16 x i16> %vb to <16 x i32>
  %p = mul <16 x i32> %xa, %xb
  %t = call token @llvm.tensor.typeinfo(<16 x i32> %p, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %s = call <8 x i32> @llvm.tensor.reduce.add(token %t, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 2>)
  %n = add <8 x i32> %sum, %s
  %r = call token @llvm.tensor.typeinfo(<8 x i32> %n, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %r, <2 x i32> <i32 0, i32 0>)
  ret void
}
