; An expression on dense matrices is one long row, in tiles of a few registers; a scalar is broadcast outside of the loop.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define void @f(ptr noalias %c, ptr %x, ptr %y, float %s) {
; CHECK: call void @[[KERNEL:tlx.map.*x.*.f32]](ptr %c, ptr %{{.*}}, ptr %{{.*}}, float %s)
; CHECK-NEXT: ret void
; CHECK: define internal void @[[KERNEL]](ptr %to, ptr %x0, ptr %x1, float %s0) nounwind noinline "tlx-stage"="tiles"
; CHECK-NEXT: entry:
; CHECK-NEXT: %[[ONE:.*]] = insertelement <1 x float> undef, float %s0, i32 0
; CHECK-NEXT: %[[S:.*]] = call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %[[ONE]], <2 x i32> <i32 1, i32 1>
; CHECK-NEXT: %[[SCALE:.*]] = call <48 x float> @llvm.tensor.broadcast.v48f32.v2i32.v2i32(token %[[S]], <2 x i32> <i32 1, i32 48>, <2 x i32> <i32 0, i32 1>)
; CHECK: j.loop:
; CHECK: %[[TX:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 1, i32 48>
; CHECK-NEXT: %{{.*}} = call <48 x float> @llvm.tensor.tovector.v48f32(token %[[TX]])
; CHECK: call <48 x float> @llvm.tensor.tovector.v48f32(
; CHECK-NEXT: %[[SCALED:.*]] = fmul nnan <48 x float> %{{.*}}, %[[SCALE]]
; CHECK-NEXT: %[[SUM:.*]] = fadd <48 x float> %[[SCALED]], %{{.*}}
; CHECK: call <48 x float> @llvm.tensor.relu.v48f32(
; CHECK: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %{{.*}}, <2 x i32> <i32 0, i32 0>)
; CHECK: icmp slt i64 %{{.*}}, 20
; The remainder: 1000 = 20 * 48 + 40, three registers with 8 lanes of padding.
; CHECK: j.end:
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 1, i32 48>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 8>

define void @f(ptr noalias %c, ptr %x, ptr %y, float %s) {
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 50, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 20>)
  %vx = call <1000 x float> @llvm.tensor.tovector(token %tx)
  %ty = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 50, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 20>)
  %vy = call <1000 x float> @llvm.tensor.tovector(token %ty)
  %one = insertelement <1 x float> undef, float %s, i32 0
  %ts = call token @llvm.tensor.typeinfo(<1 x float> %one, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %vs = call <1000 x float> @llvm.tensor.broadcast(token %ts, <2 x i32> <i32 50, i32 20>, <2 x i32> <i32 0, i32 1>)
  %scaled = fmul nnan <1000 x float> %vx, %vs
  %sum = fadd <1000 x float> %scaled, %vy
  %t = call token @llvm.tensor.typeinfo(<1000 x float> %sum, <2 x i32> <i32 50, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <1000 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<1000 x float> %r, <2 x i32> <i32 50, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> <i32 0, i32 20>)
  ret void
}
