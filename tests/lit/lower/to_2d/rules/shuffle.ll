; Shuffles of large vectors: views if they permute dimensions, otherwise copies of few strided blocks, or a loop over a
; table. The size of the code does not depend on that of the vectors.
;
; RUN: %python %S/Inputs/lanes.py %s > %t.ll
; RUN: tlx-lower %t.ll --target=avx512 --stop-after=to-2d --check --remarks=%t.remarks | grep -v "^;" | FileCheck %s
; RUN: FileCheck %s --input-file=%t.remarks --check-prefix=REMARKS --implicit-check-not=temporary

; REMARKS: fused fadd, select into llvm.fma
; REMARKS: temporary of 16 bytes for shufflevector

; A transposed matrix is read with rows and columns exchanged.
; CHECK-LABEL: define void @transposed(
; CHECK-NOT:     alloca
; CHECK:         %lhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %a, <2 x i32> <i32 60, i32 80>, <2 x i32> <i32 1, i32 0>
; CHECK:         call <4800 x float> @llvm.tensor.matmul
; CHECK:       ret void
define void @transposed(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %v = load <4800 x float>, ptr %a
  %w = shufflevector <4800 x float> %v, <4800 x float> poison, <4800 x i32> LANES(k % 60 * 80 + k // 60)
  %x = call token @llvm.tensor.typeinfo(<4800 x float> %w, <2 x i32> <i32 80, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 60, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4800 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<4800 x float> %m, <2 x i32> <i32 80, i32 60>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

; Two elements exchanged: three blocks, the second one backwards.
; CHECK-LABEL: define void @exchanged(
; CHECK-NEXT:    call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr %a, i64 12, i1 false)
; CHECK:         %reversed = shufflevector <3 x i32> %{{.*}}, <3 x i32> undef, <3 x i32> <i32 2, i32 1, i32 0>
; CHECK:         call void @llvm.memcpy.p0.p0.i64(ptr %{{.*}}, ptr %{{.*}}, i64 19176, i1 false)
; CHECK-NEXT:    ret void
define void @exchanged(ptr noalias %a, ptr noalias %c) {
  %v = load <4800 x float>, ptr %a
  %w = shufflevector <4800 x float> %v, <4800 x float> poison, <4800 x i32> LANES(k + (k == 3) * 2 - (k == 5) * 2)
  store <4800 x float> %w, ptr %c
  ret void
}

; Registers of 64 bytes, and a smaller one for the rest.
; CHECK-LABEL: define void @reversed(
; CHECK:         %register = phi i64
; CHECK:         %reversed = shufflevector <16 x i32>
; CHECK:         icmp slt i64 %{{.*}}, 312
; CHECK:         %reversed.1 = shufflevector <8 x i32>
; CHECK-NOT:     shufflevector
; CHECK:         ret void
define void @reversed(ptr noalias %a, ptr noalias %c) {
  %v = load <5000 x float>, ptr %a
  %w = call <5000 x float> @llvm.vector.reverse.v5000f32(<5000 x float> %v)
  store <5000 x float> %w, ptr %c
  ret void
}
declare <5000 x float> @llvm.vector.reverse.v5000f32(<5000 x float>)

; Every second element of the result; the zeros are not read.
; CHECK-LABEL: define void @interleaved(
; CHECK-NOT:     alloca
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %c, token %{{.*}}, <2 x i32> <i32 0, i32 2>)
; CHECK:         %part{{.*}} = getelementptr inbounds float, ptr %c, i64 1
; CHECK-NOT:     load
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %part{{.*}}, token %{{.*}}, <2 x i32> <i32 0, i32 2>)
; CHECK:         ret void
define void @interleaved(ptr noalias %a, ptr noalias %c) {
  %v = load <4800 x float>, ptr %a
  %w = call <9600 x float> @llvm.vector.interleave2.v9600f32(<4800 x float> %v, <4800 x float> zeroinitializer)
  store <9600 x float> %w, ptr %c
  ret void
}
declare <9600 x float> @llvm.vector.interleave2.v9600f32(<4800 x float>, <4800 x float>)

; Irregular lanes are read through a table; the lane number selects one of two vectors.
; CHECK-LABEL: define void @mixed(
; CHECK:         %lane{{.*}} = load i32, ptr %{{.*}}, align 4
; CHECK:         %[[SECOND:.*]] = icmp uge i64 %{{.*}}, 4800
; CHECK:         select i1 %[[SECOND]], ptr %b, ptr %a
; CHECK:         br i1 %{{.*}}, label %lane.loop, label %lane.end
; CHECK:         ret void
define void @mixed(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %v = load <4800 x float>, ptr %a
  %u = load <4800 x float>, ptr %b
  %w = shufflevector <4800 x float> %v, <4800 x float> %u, <4800 x i32> LANES(k * k % 9600)
  store <4800 x float> %w, ptr %c
  ret void
}

; Elements of two vectors in their lanes: a select, which is fused with its use.
; CHECK-LABEL: define void @blended(
; CHECK-NOT:     alloca
; CHECK:         select <4800 x i1>
; CHECK:         call <4800 x float> @llvm.fma
; CHECK:         ret void
define void @blended(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %v = load <4800 x float>, ptr %a
  %u = load <4800 x float>, ptr %b
  %s = fadd <4800 x float> %v, %u
  %w = shufflevector <4800 x float> %v, <4800 x float> %u, <4800 x i32> LANES(k + 4800 * (k * k % 7 > 2))
  %f = call <4800 x float> @llvm.fma.v4800f32(<4800 x float> %w, <4800 x float> %s, <4800 x float> %s)
  store <4800 x float> %f, ptr %c
  ret void
}
declare <4800 x float> @llvm.fma.v4800f32(<4800 x float>, <4800 x float>, <4800 x float>)

; A small part of a large vector is loaded from the vector's memory.
; CHECK-LABEL: define <4 x float> @taken(
; CHECK:         %t = load float, ptr %part
; CHECK:         %reversed = shufflevector <3 x i32>
; CHECK:         %w = load <4 x float>, ptr %w.buf
; CHECK-NEXT:    ret <4 x float> %w
define <4 x float> @taken(ptr noalias %a) {
  %v = load <4800 x float>, ptr %a
  %w = shufflevector <4800 x float> %v, <4800 x float> poison, <4 x i32> <i32 4000, i32 301, i32 300, i32 299>
  ret <4 x float> %w
}
