; Sums are converted to C's type after the loop over K: floats to bfloat, i32 to i16.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --tile=2x8 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.2x8x19.bf16.bf16.bf16(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" {
; CHECK: %[[SUM:.*]] = call <16 x float> @llvm.tensor.smma.
; CHECK: %[[C:.*]] = fptrunc <16 x float> %[[SUM]] to <16 x bfloat>
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v16bf16.v2i32(<16 x bfloat> %[[C]],
; CHECK-LABEL: define internal void @tlx.matmul.2x8x19.i8.i8.i16.ss(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" {
; CHECK: %[[SUM:.*]] = call <16 x i32> @llvm.tensor.smma.
; CHECK: %[[C:.*]] = trunc <16 x i32> %[[SUM]] to <16 x i16>
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v16i16.v2i32(<16 x i16> %[[C]],

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 2, i32 19>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 19, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x bfloat> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16 x bfloat> %m, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 2, i32 19>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 19, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x i16> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16 x i16> %m, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
