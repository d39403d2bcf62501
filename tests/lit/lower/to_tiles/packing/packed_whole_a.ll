; Several blocks of columns read all of a column-major A: it is packed once, 4 columns of all row tiles at a time, so
; that the rest of a cache line is used for the next row tile before the line is evicted.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.18x192x1024.f32.f32.f32(
; CHECK: {{.*}}call noalias ptr @malloc(i64 73792)
; CHECK: kp.loop:
; CHECK-NEXT: %[[KP:.*]] = phi i64 [ 0, %allocated ], [ %{{.*}}, %ip.end ]
; CHECK-NEXT: %[[COLUMN:.*]] = mul i64 %[[KP]], 4
; CHECK: ip.loop:
; CHECK: load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 1, i32 9>,
; CHECK: icmp slt i64 %{{.*}}, 4
; CHECK: kp.end:
; CHECK: jc.loop:
; CHECK-NOT: <2 x i32> <i32 1, i32 9>
; CHECK: call <432 x float> @llvm.tensor.smma.v432f32(

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1024, i32 18>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1024, i32 192>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <3456 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<3456 x float> %m, <2 x i32> <i32 18, i32 192>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
