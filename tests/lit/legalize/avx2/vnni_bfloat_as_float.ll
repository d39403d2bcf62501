; A matrix of pairs of bfloat rows is packed as float without a shuffle: a word shifted left is an element of the even row,
; masked one of the odd row.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --stop-after=to-tiles | FileCheck %s --check-prefix=TILES
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s
; RUN: tlx-lower %s -o /dev/null --target=avx2 --check

; TILES: %[[PAIRS:.*]] = call token @llvm.tensor.load.p0.v5i32(ptr elementtype(bfloat) %{{.*}}, <5 x i32> <i32 1, i32 1, i32 8, i32 2, i32 1>
; TILES: %[[ROWS:.*]] = call <16 x bfloat> @llvm.tensor.reshape.permute.v16bf16.v5i32.v2i32(token %[[PAIRS]], <5 x i32> <i32 0, i32 1, i32 3, i32 2, i32 4>, <2 x i32> <i32 2, i32 8>)
; TILES: fpext <16 x bfloat> %[[ROWS]] to <16 x float>

; CHECK: %[[WORDS:.*]] = bitcast <16 x i16> %{{.*}} to <8 x i32>
; CHECK: shl <8 x i32> %[[WORDS]], <i32 16,
; CHECK: and <8 x i32> %{{.*}}, <i32 -65536,

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %ta = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <3 x i32> <i32 4, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %tb = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 16, i32 48, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <192 x float> @llvm.tensor.contract(token %ta, token %tb, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 2>)
  %t = call token @llvm.tensor.typeinfo(<192 x float> %m, <2 x i32> <i32 4, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
