; A copy processes rows in tiles of four registers, and the remainder of each row.
;
;     5x37 floats, rows of 40: 2 x 16 and 5
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define void @f(ptr noalias %to, ptr %from) {
; CHECK-NEXT: call void @tlx.copy.5x37.f32(ptr %to, ptr %from)
; CHECK-LABEL: define internal void @tlx.copy.5x37.f32(ptr %to, ptr %from) nounwind noinline "tlx-stage"="tiles" {
; CHECK-NEXT: entry:
; CHECK-NEXT: br label %i.loop
; CHECK: i.loop:
; CHECK-NEXT: %[[I:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %j.end ]
; CHECK-NEXT: br label %j.loop
; CHECK: j.loop:
; CHECK-NEXT: %[[J:.*]] = phi i64 [ 0, %i.loop ], [ %{{.*}}, %j.loop ]
; CHECK-NEXT: %[[T:.*]] = mul i64 %[[J]], 16
; CHECK-NEXT: %[[T_1:.*]] = mul i64 %[[I]], 37
; CHECK-NEXT: %[[T_2:.*]] = add i64 %[[T_1]], %[[T]]
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %from, i64 %[[T_2]]
; CHECK-NEXT: %[[X:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_3]], <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 37>)
; CHECK-NEXT: %[[X_ROWS:.*]] = call <16 x float> @llvm.tensor.tovector.v16f32(token %[[X]])
; CHECK-NEXT: %[[ROWS:.*]] = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %[[X_ROWS]], <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_4:.*]] = mul i64 %[[I]], 40
; CHECK-NEXT: %[[T_5:.*]] = add i64 %[[T_4]], %[[T]]
; CHECK-NEXT: %[[T_6:.*]] = getelementptr inbounds float, ptr %to, i64 %[[T_5]]
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_6]], token %[[ROWS]], <2 x i32> <i32 0, i32 40>)
; CHECK-NEXT: %[[J_NEXT:.*]] = add i64 %[[J]], 1
; CHECK-NEXT: %[[T_7:.*]] = icmp slt i64 %[[J_NEXT]], 2
; CHECK-NEXT: br i1 %[[T_7]], label %j.loop, label %j.end
; CHECK: j.end:
; CHECK-NEXT: %[[I_NEXT:.*]] = add i64 %[[I]], 1
; CHECK-NEXT: %[[T_8:.*]] = icmp slt i64 %[[I_NEXT]], 5
; CHECK-NEXT: br i1 %[[T_8]], label %i.loop, label %i.end
; CHECK: i.end:
; CHECK-NEXT: br label %i.loop.1
; CHECK: i.loop.1:
; CHECK-NEXT: %[[I_1:.*]] = phi i64 [ 0, %i.end ], [ %{{.*}}, %i.loop.1 ]
; CHECK-NEXT: %[[T_9:.*]] = mul i64 %[[I_1]], 37
; CHECK-NEXT: %[[T_10:.*]] = add i64 %[[T_9]], 32
; CHECK-NEXT: %[[T_11:.*]] = getelementptr inbounds float, ptr %from, i64 %[[T_10]]
; CHECK-NEXT: %[[X_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_11]], <2 x i32> <i32 1, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 37>)
; CHECK-NEXT: %[[X_ROWS_1:.*]] = call <5 x float> @llvm.tensor.tovector.v5f32(token %[[X_1]])
; CHECK-NEXT: %[[ROWS_1:.*]] = call token @llvm.tensor.typeinfo.v5f32.v2i32(<5 x float> %[[X_ROWS_1]], <2 x i32> <i32 1, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_12:.*]] = mul i64 %[[I_1]], 40
; CHECK-NEXT: %[[T_13:.*]] = add i64 %[[T_12]], 32
; CHECK-NEXT: %[[T_14:.*]] = getelementptr inbounds float, ptr %to, i64 %[[T_13]]
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_14]], token %[[ROWS_1]], <2 x i32> <i32 0, i32 40>)
; CHECK-NEXT: %[[I_NEXT_1:.*]] = add i64 %[[I_1]], 1
; CHECK-NEXT: %[[T_15:.*]] = icmp slt i64 %[[I_NEXT_1]], 5
; CHECK-NEXT: br i1 %[[T_15]], label %i.loop.1, label %i.end.1
; CHECK: i.end.1:
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr noalias %to, ptr %from) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %from, <2 x i32> <i32 5, i32 37>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr elementtype(float) %to, token %x, <2 x i32> <i32 0, i32 40>)
  ret void
}
