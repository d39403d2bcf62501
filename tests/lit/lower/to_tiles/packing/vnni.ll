; For a dot product, B is packed in VNNI order with reshape.block, and a packed tile is read as a 3-D load and a
; reshape.permute: logically the 2x32 matrix again.
;
;     B 6x32 bfloat          [3][32][2]
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %{{.*}}, <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT: %[[B_VNNI:.*]] = call <64 x bfloat> @llvm.tensor.reshape.block.v64bf16.v1i32.v1i32(token %[[B_1]], <1 x i32> <i32 0>, <1 x i32> <i32 2>)
; CHECK-NEXT: %[[B_PACKED:.*]] = call token @llvm.tensor.typeinfo.v64bf16.v2i32(<64 x bfloat> %[[B_VNNI]], <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_3:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_4:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_3]]
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_4]], token %[[B_PACKED]], <2 x i32> <i32 0, i32 0>)
; CHECK: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %{{.*}}, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_7:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_7]], <2 x i32> <i32 8, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT: %[[T_8:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_8]]
; CHECK-NEXT: %[[B_VNNI_1:.*]] = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(bfloat) %[[T_9]], <3 x i32> <i32 1, i32 32, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-NEXT: %[[B_FLAT:.*]] = call <64 x bfloat> @llvm.tensor.reshape.permute.v64bf16.v3i32.v2i32(token %[[B_VNNI_1]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 2, i32 32>)
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.typeinfo.v64bf16.v2i32(<64 x bfloat> %[[B_FLAT]], <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %{{.*}} = call <256 x float> @llvm.tensor.smma.v256f32(token %[[ACC]], token %[[A_1]], token %[[B_2]])

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 8, i32 6>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 6, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
