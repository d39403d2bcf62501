; Matrices in memory: tensors with a pitch where the stride is a constant, else a dense copy made column by column.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s --implicit-check-not=llvm.matrix
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0
; RUN: grep -v '^;' %s | tlx-lower --target=generic | FileCheck %s --check-prefix=LOWERED --implicit-check-not=llvm.tensor

; CHECK-LABEL: define void @constant(
define void @constant(ptr %p, ptr %q) {
; CHECK: %[[T:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %p, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 9>)
; CHECK-NEXT: %m = call <6 x float> @llvm.tensor.tovector.v6f32(token %[[T]])
  %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr align 16 %p, i64 9, i1 false, i32 2, i32 3)
; CHECK-NEXT: %[[U:.*]] = call token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float> %m, <2 x i32> <i32 3, i32 2>,
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %q, token %[[U]], <2 x i32> <i32 0, i32 7>)
  call void @llvm.matrix.column.major.store.v6f32.i64(<6 x float> %m, ptr %q, i64 7, i1 false, i32 2, i32 3)
  ret void
}

; The loops replace the calls and split their block.
; CHECK-LABEL: define void @variable(
define void @variable(ptr %p, ptr %q, i64 %stride, i32 %short) {
; CHECK-NEXT: %[[TO:.*]] = alloca <6 x float>, align 64
; CHECK-NEXT: %[[FROM:.*]] = alloca <6 x float>, align 64
; CHECK: %[[OFFSET:.*]] = mul i64 %[[COLUMN:.*]], %stride
; CHECK-NEXT: %[[THERE:.*]] = getelementptr inbounds float, ptr %p, i64 %[[OFFSET]]
; CHECK-NEXT: %[[ROW:.*]] = mul i64 %[[COLUMN]], 2
; CHECK-NEXT: %[[HERE:.*]] = getelementptr inbounds float, ptr %[[FROM]], i64 %[[ROW]]
; CHECK-NEXT: call void @llvm.memcpy.p0.p0.i64(ptr %[[HERE]], ptr %[[THERE]], i64 8, i1 false)
; CHECK: %m = load <6 x float>, ptr %[[FROM]], align 4
  %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %p, i64 %stride, i1 false, i32 2, i32 3)
; CHECK-NEXT: store <6 x float> %m, ptr %[[TO]], align 4
; CHECK-NEXT: %[[WIDE:.*]] = sext i32 %short to i64
; CHECK: mul i64 %{{.*}}, %[[WIDE]]
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %{{.*}}, ptr %{{.*}}, i64 8, i1 false)
  call void @llvm.matrix.column.major.store.v6f32.i32(<6 x float> %m, ptr %q, i32 %short, i1 false, i32 2, i32 3)
; CHECK: ret void
  ret void
}

; CHECK-LABEL: define void @volatile(
define void @volatile(ptr %p, ptr %q) {
; CHECK: load volatile <2 x float>, ptr %{{.*}}, align 4
; CHECK-NEXT: store <2 x float>
  %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr align 16 %p, i64 9, i1 true, i32 2, i32 3)
; CHECK: load <2 x float>
; CHECK-NEXT: store volatile <2 x float> %{{.*}}, ptr %{{.*}}, align 2
  call void @llvm.matrix.column.major.store.v6f32.i64(<6 x float> %m, ptr align 2 %q, i64 7, i1 true, i32 2, i32 3)
  ret void
}

; Tensors are as aligned as their elements are, and their strides have 32 bits.
; CHECK-LABEL: define void @unusual(
; CHECK-NOT: llvm.tensor.load
; CHECK: ret void
define void @unusual(ptr %p, ptr %q) {
  %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr align 2 %p, i64 9, i1 false, i32 2, i32 3)
  %n = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %p, i64 4294967296, i1 false, i32 2, i32 3)
  store <6 x float> %m, ptr %q
  store <6 x float> %n, ptr %q
  ret void
}

; LOWERED-LABEL: define void @volatile(
; LOWERED: load volatile <2 x float>
; LOWERED: store volatile <2 x float>

declare <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr, i64, i1 immarg, i32 immarg, i32 immarg)
declare void @llvm.matrix.column.major.store.v6f32.i64(<6 x float>, ptr, i64, i1 immarg, i32 immarg, i32 immarg)
declare void @llvm.matrix.column.major.store.v6f32.i32(<6 x float>, ptr, i32, i1 immarg, i32 immarg, i32 immarg)
