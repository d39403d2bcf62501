; Signed by signed bytes with a dot product of unsigned by signed ones:
;
;     A @ B = (A xor 128 as u8) @ B - 128 * column sums of B
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: k.loop.1:
; CHECK-NEXT: %[[K_1:.*]] = phi i64 [ 0, %k.end ], [ %{{.*}}, %k.loop.1 ]
; CHECK-NEXT: %[[K_ACC:.*]] = phi <32 x i32> [ zeroinitializer, %k.end ], [ %{{.*}}, %k.loop.1 ]
; CHECK-NEXT: %[[SUM:.*]] = call token @llvm.tensor.typeinfo.v32i32.v2i32(<32 x i32> %[[K_ACC]], <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[X128:.*]] = call token @llvm.tensor.typeinfo.v4i8.v2i32(<4 x i8> <i8 -128, i8 -128, i8 -128, i8 -128>, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_8:.*]] = mul i64 %[[K_1]], 128
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds i8, ptr %{{.*}}, i64 %[[T_8]]
; CHECK-NEXT: %[[B_VNNI_1:.*]] = call token @llvm.tensor.load.p0.v3i32(ptr elementtype(i8) %[[T_9]], <3 x i32> <i32 1, i32 32, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
; CHECK-NEXT: %[[B_FLAT:.*]] = call <128 x i8> @llvm.tensor.reshape.permute.v128i8.v3i32.v2i32(token %[[B_VNNI_1]], <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 4, i32 32>)
; CHECK-NEXT: %[[B_2:.*]] = call token @llvm.tensor.typeinfo.v128i8.v2i32(<128 x i8> %[[B_FLAT]], <2 x i32> <i32 4, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[USMMA:.*]] = call <32 x i32> @llvm.tensor.usmma.v32i32(token %[[SUM]], token %[[X128]], token %[[B_2]])
; CHECK-NEXT: %[[K_NEXT_1:.*]] = add i64 %[[K_1]], 1
; CHECK-NEXT: %{{.*}} = icmp slt i64 %[[K_NEXT_1]], 4
; CHECK: k.end.1:
; CHECK-NEXT: %[[T_11:.*]] = sub <32 x i32> zeroinitializer, %[[USMMA]]
; CHECK-NEXT: %[[COLSUM:.*]] = call token @llvm.tensor.typeinfo.v32i32.v2i32(<32 x i32> %[[T_11]], <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[COLSUM]], <2 x i32> <i32 0, i32 0>)
; CHECK: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i8) %{{.*}}, <2 x i32> <i32 2, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[A_PART:.*]] = call <128 x i8> @llvm.tensor.tovector.v128i8(token %[[A_1]])
; CHECK-NEXT: %[[T_16:.*]] = xor <128 x i8> %[[A_PART]], <{{(i8 -128(, )?)+}}>
; CHECK-NEXT: %[[A_PACKED:.*]] = call token @llvm.tensor.typeinfo.v128i8.v2i32(<128 x i8> %[[T_16]], <2 x i32> <i32 2, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[A_PACKED]], <2 x i32> <i32 0, i32 0>)
; CHECK: %[[COLSUM_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(i32) %{{.*}}, <2 x i32> <i32 1, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[BROADCAST:.*]] = call <256 x i32> @llvm.tensor.broadcast.v256i32.v2i32.v2i32(token %[[COLSUM_1]], <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>)
; CHECK: %{{.*}} = phi <256 x i32> [ %[[BROADCAST]], %k.end.1 ], [ %{{.*}}, %k.loop.2 ]
; CHECK: %{{.*}} = call <256 x i32> @llvm.tensor.usmma.v256i32(token %{{.*}}, token %{{.*}}, token %{{.*}})

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x i32> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
