; The accumulator of an mma is read where the sums start; C may be the accumulator itself, so it is not noalias.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define void @f(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.8x16x20.f32.f32.f32(ptr %c, ptr %a, ptr %b, ptr %c)
; CHECK-LABEL: define internal void @tlx.matmul.8x16x20.f32.f32.f32(ptr %c, ptr %a, ptr %b, ptr %acc) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NEXT: entry:
; CHECK-NEXT: %[[C_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %acc, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: %[[C_OLD:.*]] = call <128 x float> @llvm.tensor.tovector.v128f32(token %[[C_1]])
; CHECK-NEXT: br label %k.loop
; CHECK: k.loop:
; CHECK-NEXT: %{{.*}} = phi i64 [ 0, %entry ], [ %{{.*}}, %k.loop ]
; CHECK-NEXT: %[[K_ACC:.*]] = phi <128 x float> [ %[[C_OLD]], %entry ], [ %{{.*}}, %k.loop ]
; CHECK-NEXT: %{{.*}} = call token @llvm.tensor.typeinfo.v128f32.v2i32(<128 x float> %[[K_ACC]], <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK: %[[C_2:.*]] = call token @llvm.tensor.typeinfo.v128f32.v2i32(<128 x float> %{{.*}}, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: call void @llvm.tensor.store.p0.v2i32(ptr %c, token %[[C_2]], <2 x i32> <i32 0, i32 16>)
; CHECK-NEXT: ret void

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 20>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 20, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <128 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<128 x float> %m, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
