; A product with an epilogue is split along K, too. The last pass applies the epilogue. Partial sums stay in C; or in a
; temporary where C has another type, or where a matrix that the epilogue reads may be C.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles --knobs=kc=64 | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.2x16x256.f32.f32.f32.fused(ptr noalias %c,
; CHECK-NOT: scratch
; CHECK: call void @llvm.tensor.store.p0.v2i32(ptr %c, token
; CHECK: pc.loop:
; CHECK: load.p0.v2i32(ptr elementtype(float) %c,
; CHECK-NOT: fadd
; CHECK: call void @llvm.tensor.store.p0.v2i32(ptr %c, token
; CHECK: pc.end:
; CHECK: load.p0.v2i32(ptr elementtype(float) %c,
; CHECK: fadd <16 x float>

; CHECK-LABEL: define internal void @tlx.matmul.2x16x256.f32.f32.f32.fused.1(ptr %c,
; CHECK: %[[SUMS:.*]] = alloca [128 x i8], align 64
; CHECK-NOT: (ptr %c,
; CHECK: pc.loop:
; CHECK-NOT: (ptr %c,
; CHECK: pc.end:

define void @row(ptr noalias %c, ptr %a, ptr %b, ptr %x) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 256, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %row = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %r = call <32 x float> @llvm.tensor.broadcast(token %row, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>)
  %y = fadd <32 x float> %m, %r
  store <32 x float> %y, ptr %c
  ret void
}

define void @matrix(ptr %c, ptr noalias %a, ptr noalias %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 256>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 256, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %old = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %o = call <32 x float> @llvm.tensor.tovector(token %old)
  %y = fadd <32 x float> %m, %o
  store <32 x float> %y, ptr %c
  ret void
}
