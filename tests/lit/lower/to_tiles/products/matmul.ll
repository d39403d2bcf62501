; A product becomes a call to a kernel on the pointers of C, A and B, and the kernel a loop over K around one tile
; product, for two positions of K at a time: its sums are a phi of a flattened vector, to which a typeinfo in the body
; gives a tensor type.
;
;     C = A @ B          8x16 16x32 -> 8x32, one register tile of 8x32 floats
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define void @f(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.8x32x16.f32.f32.f32(ptr %c, ptr %a, ptr %b)
; CHECK-NEXT: ret void
; CHECK-LABEL: define internal void @tlx.matmul.8x32x16.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NEXT: entry:
; CHECK-NEXT: br label %k.loop
; CHECK: k.loop:
; CHECK-NEXT: %[[K:.*]] = phi i64 [ 0, %entry ], [ %{{.*}}, %k.loop ]
; CHECK-NEXT: %[[K_ACC:.*]] = phi <256 x float> [ zeroinitializer, %entry ], [ %{{.*}}, %k.loop ]
; CHECK-NEXT: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %[[K_ACC]], <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T:.*]] = getelementptr inbounds float, ptr %a, i64 %[[K]]
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T]], <2 x i32> <i32 8, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %[[T_1:.*]] = mul i64 %[[K]], 32
; CHECK-NEXT: %[[T_2:.*]] = getelementptr inbounds float, ptr %b, i64 %[[T_1]]
; CHECK-NEXT: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_2]], <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT: %[[SMMA:.*]] = call <256 x float> @llvm.tensor.smma.v256f32(token %[[ACC]], token %[[A_1]], token %[[B_1]])
; CHECK-NEXT: %[[K_NEXT:.*]] = add i64 %[[K]], 2
; CHECK-NEXT: %[[T_3:.*]] = icmp slt i64 %[[K_NEXT]], 16
; CHECK-NEXT: br i1 %[[T_3]], label %k.loop, label %k.end
; CHECK: k.end:
; CHECK-NEXT: %[[C_1:.*]] = call token @llvm.tensor.typeinfo.v256f32.v2i32(<256 x float> %[[SMMA]], <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %c, token %[[C_1]], <2 x i32> <i32 0, i32 32>)
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
