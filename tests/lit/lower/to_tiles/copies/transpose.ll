; A copy to the other memory order transposes square tiles as wide as a register, and the remainders at the edges.
;
;     10x7 -> 7x10, rows of 12: tiles of 4x4, 2x4, 4x3 and 2x3
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define void @f(ptr noalias %to, ptr %from) {
; CHECK-NEXT: call void @tlx.transpose.10x7.f32(ptr %to, ptr %from)
; CHECK-LABEL: define internal void @tlx.transpose.10x7.f32(ptr %to, ptr %from) nounwind noinline "tlx-stage"="tiles" {
; CHECK: %[[X:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT: %[[X_ROWS:.*]] = call <16 x float> @llvm.tensor.transpose.v16f32.v2i32(token %[[X]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %[[ROWS:.*]] = call token @llvm.tensor.typeinfo.v16f32.v2i32(<16 x float> %[[X_ROWS]], <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %to, i64 %{{.*}}
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %[[T_3]], token %[[ROWS]], <2 x i32> <i32 0, i32 12>)
; CHECK: %[[X_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT: %{{.*}} = call <8 x float> @llvm.tensor.transpose.v8f32.v2i32(token %[[X_1]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v8f32.v2i32(
; CHECK-NEXT: %{{.*}} = getelementptr inbounds float, ptr %to, i64 8
; CHECK: %[[X_2:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT: %{{.*}} = call <12 x float> @llvm.tensor.transpose.v12f32.v2i32(token %[[X_2]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v12f32.v2i32(
; CHECK-NEXT: %{{.*}} = add i64 48, %{{.*}}
; CHECK: %[[X_3:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %{{.*}}, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 7>)
; CHECK-NEXT: %{{.*}} = call <6 x float> @llvm.tensor.transpose.v6f32.v2i32(token %[[X_3]], <2 x i32> <i32 0, i32 1>)
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v6f32.v2i32(
; CHECK-NEXT: %{{.*}} = getelementptr inbounds float, ptr %to, i64 56

define void @f(ptr noalias %to, ptr %from) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %from, <2 x i32> <i32 10, i32 7>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %v = call <70 x float> @llvm.tensor.transpose(token %x, <2 x i32> <i32 1, i32 0>)
  %t = call token @llvm.tensor.typeinfo(<70 x float> %v, <2 x i32> <i32 7, i32 10>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %to, token %t, <2 x i32> <i32 0, i32 12>)
  ret void
}
