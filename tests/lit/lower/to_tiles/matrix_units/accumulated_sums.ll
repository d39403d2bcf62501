; On a matrix unit, the sums of a product to which a tensor is added with `reassoc` start from that tensor. The first
; tile of panels that are packed one by one is peeled off the loop, since its initial sums are not worth a copy.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s
; RUN: tlx-lower %t.ll -o %t.o.ll --target=amx --check --emulate-matrix

; CHECK-LABEL: define internal void @tlx.matmul.64x64x64.bf16.bf16.f32(
; CHECK:         %[[ACC:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 32, i32 32>
; CHECK-NOT:     @llvm.tensor.store.p0.v2i32(ptr %c
; CHECK:         call <1024 x float> @llvm.tensor.smma
; CHECK-NOT:     fadd
define void @added(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(bfloat) %p, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(bfloat) %q, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <4096 x float> @llvm.tensor.matmul(token %a, token %b)
  %c = call token @llvm.tensor.load(ptr elementtype(float) %r, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %old = call <4096 x float> @llvm.tensor.tovector(token %c)
  %s = fadd reassoc <4096 x float> %old, %m
  %t = call token @llvm.tensor.typeinfo(<4096 x float> %s, <2 x i32> <i32 64, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
