; Without an instruction that multiplies bfloat, both operands are converted to float while they are packed.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --stop-after=to-tiles | FileCheck %s

; CHECK: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %{{.*}}, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %[[B_ROWS:.*]] = call <16 x bfloat> @llvm.tensor.tovector.v16bf16(token %[[B_1]])
; CHECK-NEXT: %[[T_3:.*]] = fpext <16 x bfloat> %[[B_ROWS]] to <16 x float>
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %[[T_3]], <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %{{.*}}, <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[A_PART:.*]] = call <32 x bfloat> @llvm.tensor.tovector.v32bf16(token %[[A_1]])
; CHECK-NEXT: %[[T_16:.*]] = fpext <32 x bfloat> %[[A_PART]] to <32 x float>
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v32f32.v2i32(<32 x float> %[[T_16]], <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v48f32.v2i32(<48 x float> %{{.*}}, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_22:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %[[A_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_22]], <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %[[T_23:.*]] = mul i64 %{{.*}}, 16
; CHECK-NEXT: %[[T_24:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %[[T_23]]
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_24]], <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %{{.*}} = call <48 x float> @llvm.tensor.smma.v48f32(token %[[ACC]], token %[[A_2]], token %[[B_2]])

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <128 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<128 x float> %m, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
