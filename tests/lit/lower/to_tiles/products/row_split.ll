; M is split evenly: 100 rows in 8 tiles, 4 of 13 rows and then 4 of 12.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: ir.loop:
; CHECK-NEXT: %[[IR:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %k.end ]
; CHECK-NEXT: %[[T:.*]] = mul i64 %[[IR]], 13
; CHECK: %{{.*}} = call token @llvm.tensor.typeinfo.v416f32.v2i32(<416 x float> %{{.*}}, <2 x i32> <i32 13, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_3]], <2 x i32> <i32 13, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK: %[[C_1:.*]] = call token @llvm.tensor.typeinfo.v416f32.v2i32(<416 x float> %{{.*}}, <2 x i32> <i32 13, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[T_7:.*]] = mul i64 %[[T]], 28
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %[[T_7]]
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_8]], token %[[C_1]], <2 x i32> <i32 0, i32 28>)
; CHECK-NEXT: %[[IR_NEXT:.*]] = add i64 %[[IR]], 1
; CHECK-NEXT: %[[T_9:.*]] = icmp slt i64 %[[IR_NEXT]], 4
; CHECK-NEXT: br i1 %[[T_9]], label %ir.loop, label %ir.end
; CHECK: ir.loop.1:
; CHECK-NEXT: %[[IR_1:.*]] = phi i64 [ 0, %ir.end ], [ %{{.*}}, %k.end.1 ]
; CHECK-NEXT: %[[T_10:.*]] = mul i64 %[[IR_1]], 12
; CHECK-NEXT: %[[ROW:.*]] = add i64 52, %[[T_10]]
; CHECK: %{{.*}} = call token @llvm.tensor.typeinfo.v384f32.v2i32(<384 x float> %{{.*}}, <2 x i32> <i32 12, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[T_13:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_13]], <2 x i32> <i32 12, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 4>)
; CHECK: %[[C_2:.*]] = call token @llvm.tensor.typeinfo.v384f32.v2i32(<384 x float> %{{.*}}, <2 x i32> <i32 12, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>)
; CHECK-NEXT: %[[T_17:.*]] = mul i64 %[[ROW]], 28
; CHECK-NEXT: %[[T_18:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %[[T_17]]
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_18]], token %[[C_2]], <2 x i32> <i32 0, i32 28>)
; CHECK-NEXT: %[[IR_NEXT_1:.*]] = add i64 %[[IR_1]], 1
; CHECK-NEXT: %[[T_19:.*]] = icmp slt i64 %[[IR_NEXT_1]], 4
; CHECK-NEXT: br i1 %[[T_19]], label %ir.loop.1, label %ir.end.1

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 100, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 28>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <2800 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<2800 x float> %m, <2 x i32> <i32 100, i32 28>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
