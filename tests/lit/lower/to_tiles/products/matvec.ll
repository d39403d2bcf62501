; A matrix times a vector is summed along K: registers hold positions of K, not columns of the result. A tile of rows of the
; matrix is multiplied by the extended vector; as many neighbours are added as the target's dot product does, or two by multiply-adds of bfloat.
;
; REQUIRES: split-file
; RUN: split-file %s %t
; RUN: tlx-lower %t/float.ll -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=FLOAT
; RUN: tlx-lower %t/bfloat.ll -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=BFLOAT
; RUN: tlx-lower %t/bfloat.ll -o - --target=avx2 --stop-after=to-tiles | FileCheck %s --check-prefix=PAIRS
; RUN: tlx-lower %t/bytes.ll -o - --target=avx512 --stop-after=to-tiles | FileCheck %s --check-prefix=SIGN
; RUN: tlx-lower %t/bytes.ll -o - --target=avx2 --stop-after=to-tiles | FileCheck %s --check-prefix=WIDER
; RUN: tlx-lower %t/layer.ll -o - --target=avx512 --stop-after=to-tiles --remarks 2>&1 | FileCheck %s --check-prefix=LAYER
;
; FLOAT-LABEL: define internal void @tlx.reduce.add.rows.64x256.f32(
; FLOAT: %[[P:.*]] = fmul <128 x float>
; FLOAT: %[[T:.*]] = call token @llvm.tensor.typeinfo.v128f32.v2i32(<128 x float> %[[P]], <2 x i32> <i32 8, i32 16>
; FLOAT: %[[S:.*]] = call <128 x float> @llvm.tensor.reduce.add.v128f32.v2i32(token %[[T]], <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 1, i32 1>)
; FLOAT: fadd <128 x float> %{{.*}}, %[[S]]
;
; BFLOAT-LABEL: define internal void @tlx.reduce.add.rows.64x256.f32(
; BFLOAT: %[[X:.*]] = fpext <256 x bfloat> %{{.*}} to <256 x float>
; BFLOAT: %[[Y:.*]] = fpext <256 x bfloat> %{{.*}} to <256 x float>
; BFLOAT: %[[P:.*]] = fmul <256 x float> %[[X]], %[[Y]]
; BFLOAT: typeinfo.v256f32.v2i32(<256 x float> %[[P]], <2 x i32> <i32 8, i32 32>
; BFLOAT: call <128 x float> @llvm.tensor.reduce.add.v128f32.v2i32(token %{{.*}}, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 2>)
;
; PAIRS-LABEL: define internal void @tlx.reduce.add.rows.64x256.f32(
; PAIRS: call <32 x float> @llvm.tensor.reduce.add.v32f32.v2i32(token %{{.*}}, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 2>)
;
; Signed bytes as unsigned ones; the product with the offset is subtracted.
;
; SIGN-LABEL: define internal void @tlx.reduce.add.rows.64x256.i32(
; SIGN: mul <64 x i32>
; SIGN: %[[E:.*]] = add <16 x i32>
; SIGN: i.loop:
; SIGN: xor <512 x i8> %{{.*}}, <i8 -128, i8 -128,
; SIGN: zext <512 x i8> %{{.*}} to <512 x i32>
; SIGN: call <128 x i32> @llvm.tensor.reduce.add.v128i32.v2i32(token %{{.*}}, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 1, i32 4>)
; SIGN-COUNT-8: sub <16 x i32> %{{.*}}, %[[E]]
;
; WIDER-LABEL: define internal void @tlx.reduce.add.rows.64x256.i32(
; WIDER-COUNT-2: sext <{{.*}} x i8> %{{.*}} to <{{.*}} x i16>
; WIDER-COUNT-2: sext <{{.*}} x i16> %{{.*}} to <{{.*}} x i32>
; WIDER: reduce.add.{{.*}}<2 x i32> <i32 1, i32 2>, <2 x i32> <i32 1, i32 2>)
;
; The epilogue is computed for several sums at a time, after their horizontal reduction; it may read C.
;
; LAYER: reduce.add 64x256 float of fpext, fpext, fmul (2 extra operands), dot products of 2, then fadd, fadd, relu, fptrunc (2 extra operands), in one pass
; LAYER-LABEL: define internal void @tlx.reduce.add.rows.64x256.bf16(ptr noalias %to, ptr %x0, ptr %x1, ptr %x2, ptr %x3)
; LAYER: %[[F:.*]] = call <8 x float> @llvm.tensor.reduce.add.v8f32.v2i32(
; LAYER: load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 1, i32 8>
; LAYER: fadd <8 x float> %[[F]], %{{.*}}
; LAYER: call <8 x float> @llvm.tensor.relu.v8f32(
; LAYER: fptrunc <8 x float> %{{.*}} to <8 x bfloat>

;--- float.ll
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 64, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 256, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %m, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

;--- bfloat.ll
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 256, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<64 x float> %m, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

;--- bytes.ll
define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 64, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 256, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<64 x i32> %m, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

;--- layer.ll
define void @f(ptr noalias %c, ptr %a, ptr %b, ptr %d, ptr %bias) {
  %old = call token @llvm.tensor.load(ptr elementtype(float) %d, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 256, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <64 x float> @llvm.tensor.smma(token %old, token %lhs, token %rhs)
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %bias, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %x = call <64 x float> @llvm.tensor.tovector(token %tx)
  %sum = fadd <64 x float> %m, %x
  %t = call token @llvm.tensor.typeinfo(<64 x float> %sum, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <64 x float> @llvm.tensor.relu(token %t)
  %y = fptrunc <64 x float> %r to <64 x bfloat>
  %u = call token @llvm.tensor.typeinfo(<64 x bfloat> %y, <2 x i32> <i32 64, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}
