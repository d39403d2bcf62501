; Where a row tile of A stays in the first cache, but not beside a panel of B, panels lie side by side: their rows, 2 KB
; apart, go through a few sets of the cache. A shallower panel leaves room, a deeper row tile does not stay anyway.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll --target=amx -o - | FileCheck %s --check-prefix=TILES
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix

; 200 rows of pairs, in 13 steps of 16; the last 8 of them are zeros.
; CHECK-LABEL: define internal void @tlx.matmul.40x72x400.bf16.bf16.f32(
; CHECK:         call ptr @malloc(i64 {{4[0-9]+}})
; CHECK:         call void @llvm.tensor.store{{.*}}<2 x i32> <i32 0, i32 1024>)
; CHECK:         call token @llvm.tensor.load{{.*}}, <3 x i32> <i32 16, i32 {{[0-9]+}}, i32 2>, {{.*}}, <3 x i32> <i32 0, i32 512, i32 2>)
; CHECK:         call {{.*}} @llvm.tensor.smma
; CHECK:         ret void

; TILES-LABEL: define internal void @tlx.matmul.40x72x400.bf16.bf16.f32(
; TILES:         tileloadd64(i8 {{[0-7]}}, ptr %{{.*}}, i64 2048)
; TILES-LABEL: define internal void @tlx.matmul.40x72x320.bf16.bf16.f32(
; TILES-NOT:     i64 2048)
; TILES-LABEL: define internal void @tlx.matmul.40x72x640.bf16.bf16.f32(
; TILES-NOT:     i64 2048)
; TILES:       define
define void @beside(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 40, i32 400>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 400, i32 72>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <2880 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<2880 x float> %c, <2 x i32> <i32 40, i32 72>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @shallow(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 40, i32 320>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 320, i32 72>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <2880 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<2880 x float> %c, <2 x i32> <i32 40, i32 72>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @deep(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 40, i32 640>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 640, i32 72>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <2880 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<2880 x float> %c, <2 x i32> <i32 40, i32 72>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
