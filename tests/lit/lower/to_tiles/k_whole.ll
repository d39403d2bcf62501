; K is not split if C cannot hold the sums between passes, as its type is not the accumulator's.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --tile=2x8 --stop-after=to-tiles | FileCheck %s

; CHECK: icmp slt i64 %{{.*}}, 6144
; CHECK: smma
; CHECK: icmp slt i64 %{{.*}}, 6144
; CHECK: fptrunc <{{.*}} x float> %{{.*}} to <{{.*}} x bfloat>
; CHECK-NOT: llvm.tensor.smma
; CHECK: ret void

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 2, i32 6144>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 6144, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x bfloat> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<32 x bfloat> %m, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
