; The epilogue of a product is computed on its register tiles, row by row, in the single pass over K; a remark says so.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o %t --target=avx512 --stop-after=to-tiles --remarks 2>&1 | FileCheck %s --check-prefix=REMARK

; CHECK: call void @tlx.matmul.6x32x20.f32.f32.f32.fused(ptr %c, ptr %a, ptr %b, ptr %bias)
; CHECK: define internal void @tlx.matmul.6x32x20.f32.f32.f32.fused(ptr noalias %c, ptr %a, ptr %b, ptr %x0)
; CHECK: k.loop:
; CHECK: k.end:
; CHECK-NEXT: %[[SUMS:.*]] = shufflevector <192 x float> %[[ACC:.*]], <192 x float> undef, <32 x i32> <i32 0, i32 1,
; CHECK-NEXT: %[[TX:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %x0, <2 x i32> <i32 1, i32 32>
; CHECK-NEXT: %[[BIAS:.*]] = call <32 x float> @llvm.tensor.tovector.v32f32(token %[[TX]])
; CHECK-NEXT: %[[SUM:.*]] = fadd <32 x float> %[[SUMS]], %[[BIAS]]
; CHECK-NEXT: %[[T:.*]] = call token @llvm.tensor.typeinfo.v32f32.v2i32(<32 x float> %[[SUM]]
; CHECK-NEXT: %[[R:.*]] = call <32 x float> @llvm.tensor.relu.v32f32(token %[[T]])
; CHECK: call void @llvm.tensor.store.p0.v2i32(ptr %c
; CHECK-NEXT: shufflevector <192 x float> %[[ACC]], <192 x float> undef, <32 x i32> <i32 32, i32 33,

; REMARK: matmul 6x32x20 float: {{.*}}; epilogue: fadd, relu (1 extra operand)

define void @f(ptr noalias %c, ptr %a, ptr %b, ptr %bias) {
  %ta = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 6, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %tb = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 20, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <192 x float> @llvm.tensor.matmul(token %ta, token %tb)
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %bias, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %vx = call <192 x float> @llvm.tensor.broadcast(token %tx, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>)
  %sum = fadd <192 x float> %m, %vx
  %t = call token @llvm.tensor.typeinfo(<192 x float> %sum, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %r = call <192 x float> @llvm.tensor.relu(token %t)
  %u = call token @llvm.tensor.typeinfo(<192 x float> %r, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %u, <2 x i32> zeroinitializer)
  ret void
}
