; A temporary holds the sums between passes over K if C cannot, as its type is not the accumulator's.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --tile=2x8 --stop-after=to-tiles | FileCheck %s

; CHECK: icmp slt i64 %{{.*}}, 2048
; CHECK-NOT: fptrunc
; CHECK: icmp slt i64 %k.next.8, 2048
; CHECK: fptrunc <{{.*}} x float> %{{.*}} to <{{.*}} x bfloat>
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
