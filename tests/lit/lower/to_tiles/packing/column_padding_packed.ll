; A packed panel has zeros where B has padding: the tile product is a full one, and only the store of C is padded.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[B_ROWS:.*]] = call <64 x float> @llvm.tensor.transpose.v64f32.v2i32(token %[[B_1]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %[[B_PACKED:.*]] = call token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float> %[[B_ROWS]], <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %scratch, token %[[B_PACKED]], <2 x i32> <i32 0, i32 32>)
; CHECK: %[[LAST:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 16, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 12, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[LAST_ROWS:.*]] = call <64 x float> @llvm.tensor.transpose.v64f32.v2i32(token %[[LAST]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %[[LAST_PACKED:.*]] = call token @llvm.tensor.typeinfo.v64f32.v2i32(<64 x float> %[[LAST_ROWS]], <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[LAST_PACKED]], <2 x i32> <i32 0, i32 32>)
; CHECK: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %{{.*}}, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T]], <2 x i32> <i32 8, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[T_1:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_2:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %[[T_1]]
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_2]], <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT: %[[SMMA:.*]] = call <256 x float> @llvm.tensor.smma.v256f32(token %[[ACC]], token %[[A_1]], token %[[B_2]])
; CHECK: %[[C_1:.*]] = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %[[SMMA]], <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 12>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[C_1]], <2 x i32> <i32 0, i32 20>)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 20, i32 4>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <160 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<160 x float> %m, <2 x i32> <i32 8, i32 20>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
