; An expression of splats is computed once, on scalars; it stays a vector for what else uses it.
; RUN: grep -v '^;' %s | tlx-lower - --target=generic --stop-after=to-2d -o - | FileCheck %s

declare token @llvm.tensor.load(ptr, <1 x i32>, <1 x i32>, <1 x i32>, <1 x i32>)

; CHECK: define void @f(
; CHECK: %twice.1 = fadd float %s, %s
; CHECK-NEXT: %twice = fadd <vscale x 1 x float> %splat, %splat
; CHECK-NEXT: store <vscale x 1 x float> %twice, ptr %z
; CHECK: %half.1 = fmul float %twice.1, 5.000000e-01
; CHECK-NOT: %half =
; CHECK: call void @tlx.dynamic.map.f.product{{.*}}, float %half.1)
define void @f(ptr %x, ptr %y, ptr %z, <1 x i32> %n, float %s) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <vscale x 1 x float> @llvm.tensor.tovector(token %t)
  %first = insertelement <vscale x 1 x float> poison, float %s, i64 0
  %splat = shufflevector <vscale x 1 x float> %first, <vscale x 1 x float> poison, <vscale x 1 x i32> zeroinitializer
  %twice = fadd <vscale x 1 x float> %splat, %splat
  store <vscale x 1 x float> %twice, ptr %z
  %half = fmul <vscale x 1 x float> %twice, splat (float 5.000000e-01)
  %product = fmul <vscale x 1 x float> %v, %half
  %o = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %product, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %o, <1 x i32> zeroinitializer)
  ret void
}

; LLVM's optimiser adds the first lanes before it repeats the sum.
; CHECK-LABEL: define void @first_lanes(
; CHECK: %sum.1 = fadd float %s, %s
; CHECK-NOT: <vscale x 1 x float> %first
; CHECK: call void @tlx.dynamic.map.first_lanes.product{{.*}}, float %sum.1)
define void @first_lanes(ptr %x, ptr %y, <1 x i32> %n, float %s) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <vscale x 1 x float> @llvm.tensor.tovector(token %t)
  %first = insertelement <vscale x 1 x float> poison, float %s, i64 0
  %sum = fadd <vscale x 1 x float> %first, %first
  %splat = shufflevector <vscale x 1 x float> %sum, <vscale x 1 x float> poison, <vscale x 1 x i32> zeroinitializer
  %product = fmul <vscale x 1 x float> %v, %splat
  %o = call token @llvm.tensor.typeinfo(<vscale x 1 x float> %product, <1 x i32> %n, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %o, <1 x i32> zeroinitializer)
  ret void
}
