; Above 2048 positions, K is split into equal passes; the first one starts from zero, the others continue with C.
;
;     K = 6144 = 3 * 2048
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK: k.loop:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %entry ], [ %{{.*}}, %k.loop ]
; CHECK-NEXT: %{{.*}} = phi <32 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %k.loop ]
; CHECK: %{{.*}} = icmp slt i64 %{{.*}}, 2048
; CHECK: %[[C_1:.*]] = call token @llvm.tensor.typeinfo.v32f32.v2i32(<32 x float> %{{.*}}, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %{{.*}}, token %[[C_1]], <2 x i32> <i32 0, i32 16>)
; CHECK: pc.loop:
; CHECK-NEXT: %[[PC:.*]] = phi i64 [ 1, %k.end ], [ %{{.*}}, %k.end.1 ]
; CHECK: %[[C_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %[[C_OLD:.*]] = call <32 x float> @llvm.tensor.tovector.v32f32(token %[[C_2]])
; CHECK: k.loop.1:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %pc.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK-NEXT: %{{.*}} = phi <32 x float> [ %[[C_OLD]], %pc.loop ], [ %{{.*}}, %k.loop.1 ]
; CHECK: %[[PC_NEXT:.*]] = add i64 %[[PC]], 1
; CHECK-NEXT: %{{.*}} = icmp slt i64 %[[PC_NEXT]], 3

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 6144>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 6144, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<32 x float> %m, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
