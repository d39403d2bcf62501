; A matrix that is stored in strips or blocks, as `reshape.block` stores it, is an operand of products where it lies.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=avx512 -o - | FileCheck %s
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll -o %t.o.ll --target=avx512 --check
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix

; Strips of 16 columns: one product each.
; CHECK-LABEL: define void @strips(
; CHECK-NOT:     alloca
; CHECK-NOT:     reshape.permute
; CHECK:         %rhs = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %rhs.ptr, <2 x i32> <i32 64, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %out.ptr, token %product, <2 x i32> <i32 0, i32 64>)
; CHECK:         ret void
define void @strips(ptr noalias %a, ptr noalias %p, ptr noalias %c) {
  %at = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %pt = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 4, i32 64, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call <4096 x float> @llvm.tensor.reshape.permute(token %pt, <3 x i32> <i32 1, i32 0, i32 2>, <2 x i32> <i32 64, i32 64>)
  %bt = call token @llvm.tensor.typeinfo(<4096 x float> %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <2048 x float> @llvm.tensor.matmul(token %at, token %bt)
  store <2048 x float> %r, ptr %c
  ret void
}

; Blocks of 32 x 64, with pairs of rows interleaved: the columns of the left operand are in blocks, too.
; CHECK-LABEL: define void @blocks(
; CHECK-NOT:     alloca
; CHECK:         call token @llvm.tensor.load.p0.v3i32(ptr elementtype(bfloat) %{{.*}}, <3 x i32> <i32 16, i32 64, i32 2>
; CHECK:         call <{{.*}} x bfloat> @llvm.tensor.reshape.permute{{.*}}<3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 32, i32 64>
; CHECK-NOT:     x i32> <i32 128, i32 128>
; CHECK:         ret void
define void @blocks(ptr noalias %a, ptr noalias %p, ptr noalias %c) {
  %at = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 64, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %pt = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <5 x i32> <i32 4, i32 2, i32 16, i32 64, i32 2>, <5 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4>, <5 x i32> zeroinitializer, <5 x i32> zeroinitializer)
  %b = call <16384 x bfloat> @llvm.tensor.reshape.permute(token %pt, <5 x i32> <i32 0, i32 2, i32 4, i32 1, i32 3>, <2 x i32> <i32 128, i32 128>)
  %bt = call token @llvm.tensor.typeinfo(<16384 x bfloat> %b, <2 x i32> <i32 128, i32 128>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <8192 x float> @llvm.tensor.contract(token %at, token %bt, <1 x i32> <i32 1>, <1 x i32> <i32 0>)
  store <8192 x float> %r, ptr %c
  ret void
}

; A matrix that anything else reads is copied.
; CHECK-LABEL: define void @other_reader(
; CHECK:         %b.buf
define void @other_reader(ptr noalias %a, ptr noalias %p, ptr noalias %c, ptr noalias %d) {
  %at = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %pt = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 4, i32 64, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %b = call <4096 x float> @llvm.tensor.reshape.permute(token %pt, <3 x i32> <i32 1, i32 0, i32 2>, <2 x i32> <i32 64, i32 64>)
  %bt = call token @llvm.tensor.typeinfo(<4096 x float> %b, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <2048 x float> @llvm.tensor.matmul(token %at, token %bt)
  store <2048 x float> %r, ptr %c
  store <4096 x float> %b, ptr %d
  ret void
}
