; B is read unpacked if it is row-major, of the accumulator's type and small: no scratch memory, no copy.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.24x64x50.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NEXT: entry:
; CHECK-NOT: alloca
; CHECK-NOT: malloc
; CHECK: %[[ACC:.*]] = call token @llvm.tensor.typeinfo.v384f32.v2i32(<384 x float> %{{.*}}, <2 x i32> <i32 6, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %{{.*}}, i64 %{{.*}}
; CHECK-NEXT: %[[A_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_3]], <2 x i32> <i32 6, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 50>)
; CHECK-NEXT: %[[T_4:.*]] = mul i64 %{{.*}}, 64
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds float, ptr %b, i64 %[[T_4]]
; CHECK-NEXT: %[[B_1:.*]] = call token @llvm.tensor.load.p0.v2i32(ptr elementtype(float) %[[T_5]], <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %{{.*}} = call <384 x float> @llvm.tensor.smma.v384f32(token %[[ACC]], token %[[A_1]], token %[[B_1]])
; CHECK-NOT: alloca
; CHECK-NOT: malloc

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 24, i32 50>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 50, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1536 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1536 x float> %m, <2 x i32> <i32 24, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
