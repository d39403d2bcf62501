; If K is not a multiple of the dot product's width, both operands are packed with zeros after the last position, so
; that nothing beyond a row of A is read.
;
;     K = 5: A [8][6], B [3][32][2]
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: k.loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %k.loop ]
; CHECK-NEXT: %[[T_1:.*]] = mul i64 %[[K]], 2
; CHECK-NEXT: %[[T_2:.*]] = mul i64 %[[T_1]], 32
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_2]]
; CHECK-NEXT: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_3]], <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT: %[[B_VNNI:.*]] = call <64 x bfloat> @llvm.tensor.reshape.block.v64bf16.v1i32.v1i32(token %[[B_1]], <1 x i32> <i32 0>, <1 x i32> <i32 2>)
; CHECK-NEXT: %[[B_PACKED:.*]] = call token @llvm.tensor.typeinfo.v64bf16.v2i32(<64 x bfloat> %[[B_VNNI]], <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_4:.*]] = mul i64 %[[T_1]], 32
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_4]]
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_5]], token %[[B_PACKED]], <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 1
; CHECK-NEXT: %[[T_6:.*]] = icmp slt i64 %[[K_NEXT]], 2
; CHECK-NEXT: br i1 %[[T_6]], label %k.loop, label %k.end
; CHECK: k.end:
; CHECK-NEXT: %[[T_7:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 128
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_7]], <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT: %[[B_VNNI_1:.*]] = call <64 x bfloat> @llvm.tensor.reshape.block.v64bf16.v1i32.v1i32(token %[[B_2]], <1 x i32> <i32 0>, <1 x i32> <i32 2>)
; CHECK-NEXT: %[[B_PACKED_1:.*]] = call token @llvm.tensor.typeinfo.v64bf16.v2i32(<64 x bfloat> %[[B_VNNI_1]], <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 128
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_8]], token %[[B_PACKED_1]], <2 x i32> <i32 0, i32 0>)
; CHECK: r.loop:
; CHECK-NEXT: %[[R:.*]] = phi i64 [ 0, %k.end ], [ %{{.*}}, %r.loop ]
; CHECK-NEXT: %[[T_9:.*]] = mul i64 %[[R]], 5
; CHECK-NEXT: %[[T_10:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_9]]
; CHECK-NEXT: %[[T_11:.*]] = mul i64 %[[R]], 6
; CHECK-NEXT: %[[T_12:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_11]]
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_10]], <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[A_ROW:.*]] = call <6 x bfloat> @llvm.tensor.tovector.v6bf16(token %[[A_1]])
; CHECK: %[[A_PACKED:.*]] = call token @llvm.tensor.typeinfo.v6bf16.v2i32(<6 x bfloat> %[[A_ROW]], <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_12]], token %[[A_PACKED]], <2 x i32> <i32 0, i32 0>)
; CHECK: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %{{.*}}, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_15:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %[[A_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(bfloat) %[[T_15]], <2 x i32> <i32 8, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT: %[[T_16:.*]] = mul i64 %{{.*}}, 32
; CHECK-NEXT: %[[T_17:.*]] = getelementptr inbounds bfloat, ptr %{{.*}}, i64 %[[T_16]]
; CHECK-NEXT: %[[B_VNNI_2:.*]] = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(bfloat) %[[T_17]], <3 x i32> <i32 1, i32 32, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-NEXT: %[[B_FLAT:.*]] = call <64 x bfloat> @llvm.tensor.reshape.permute.v64bf16.v3i32.v2i32(token %[[B_VNNI_2]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 2, i32 32>)
; CHECK-NEXT: %[[B_3:.*]] = call token @llvm.tensor.typeinfo.v64bf16.v2i32(<64 x bfloat> %[[B_FLAT]], <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %{{.*}} = call <256 x float> @llvm.tensor.smma.v256f32(token %[[ACC]], token %[[A_2]], token %[[B_3]])
; CHECK: %{{.*}} = icmp slt i64 %{{.*}}, 3

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 8, i32 5>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 5, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
