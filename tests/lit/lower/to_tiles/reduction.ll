; A reduction of rows: sums in a tile of several rows or registers, reduced to one number for each row; lanes at an
; edge without data are set to the identity.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --stop-after=to-tiles | FileCheck %s

; CHECK: define internal void @tlx.reduce.add.rows.7x100.f32(ptr noalias %to, ptr %x0)
; CHECK: j.loop:
; CHECK: %[[ACC:.*]] = phi <32 x float> [ <float 0x8000000000000000, {{.*}} ], [ %[[NEXT:.*]], %j.loop ]
; CHECK: %[[X:.*]] = call <32 x float> @llvm.tensor.tovector.v32f32(
; CHECK-NEXT: %[[NEXT]] = fadd <32 x float> %[[ACC]], %[[X]]
; CHECK: icmp slt i64 %{{.*}}, 3
; CHECK: j.end:
; The remainder: 100 = 3 * 32 + 4.
; CHECK: call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 28>
; CHECK: %[[REST:.*]] = select <32 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, {{.*}}>, <32 x float> %{{.*}}, <32 x float> <float 0x8000000000000000,
; CHECK-NEXT: %[[ALL:.*]] = fadd <32 x float> %[[NEXT]], %[[REST]]
; CHECK: shufflevector <32 x float> %[[ALL]], <32 x float> undef, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
; CHECK: fadd <8 x float>
; CHECK: fadd <4 x float>
; CHECK: fadd <2 x float>
; CHECK: %[[ONE:.*]] = fadd <1 x float>
; CHECK: call token @llvm.tensor.typeinfo.v1f32.v2i32(<1 x float> %[[ONE]], <2 x i32> <i32 1, i32 1>
; CHECK-NEXT: call void @llvm.tensor.store

define void @f(ptr noalias %c, ptr %x) {
  %tx = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 7, i32 100>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <7 x float> @llvm.tensor.reduce.add(token %tx, <2 x i32> <i32 1, i32 100>, <2 x i32> <i32 1, i32 1>)
  %t = call token @llvm.tensor.typeinfo(<7 x float> %r, <2 x i32> <i32 7, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
