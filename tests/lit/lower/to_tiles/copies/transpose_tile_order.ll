; A transpose reads eight adjacent tiles of each group of the source's rows before the rows below.
;
;     80 columns of 72 floats in tiles of 8: a group of eight tiles and one of two, each nine tiles down the source,
;     by the same loops
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --stop-after=to-tiles | FileCheck %s
;
; CHECK-LABEL: define internal void @tlx.transpose.72x80.f32(ptr %to, ptr %from)
; CHECK: r.loop:
; CHECK-NEXT: %[[R:.*]] = phi i64
; CHECK-NEXT: %[[LEFT:.*]] = sub i64 10, %[[R]]
; CHECK-NEXT: %[[FEW:.*]] = icmp ult i64 %[[LEFT]], 8
; CHECK-NEXT: %[[TILES:.*]] = select i1 %[[FEW]], i64 %[[LEFT]], i64 8
; CHECK: j.loop:
; CHECK: i.loop:
; CHECK: call token @llvm.tensor.load.p0.v2i32({{.*}}, <2 x i32> <i32 8, i32 8>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 80>)
; CHECK: call void @llvm.tensor.store{{.*}}, <2 x i32> <i32 0, i32 72>)
; CHECK: icmp slt i64 %i.next, %[[TILES]]
; CHECK: icmp slt i64 %j.next, 9
; CHECK: icmp slt i64 %r.next, 10
; CHECK-NOT: icmp slt

define void @f(ptr noalias %y, ptr noalias %x) {
  %t = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 72, i32 80>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %r = call <5760 x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>)
  store <5760 x float> %r, ptr %y
  ret void
}
