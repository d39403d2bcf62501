; With several passes over K, only the first one reads the accumulator.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: %[[C_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %{{.*}} = call <32 x float> @llvm.tensor.tovector.v32f32(token %[[C_1]])
; CHECK: %[[C_3:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %{{.*}} = call <32 x float> @llvm.tensor.tovector.v32f32(token %[[C_3]])

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 4096>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 4096, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<32 x float> %m, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
