; Equal products share a kernel, in whatever functions they are; another leading dimension needs another kernel.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define void @f(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.8x32x16.f32.f32.f32(ptr %c, ptr %a, ptr %b)
; CHECK-LABEL: define void @same(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.8x32x16.f32.f32.f32(ptr %c, ptr %a, ptr %b)
; CHECK-LABEL: define void @pitch(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.8x32x16.f32.f32.f32.1(ptr %c, ptr %a, ptr %b)
; CHECK-LABEL: define void @column_major(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.8x32x16.f32.f32.f32.2(ptr %c, ptr %a, ptr %b)
; CHECK-LABEL: define internal void @tlx.matmul.8x32x16.f32.f32.f32(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK: %{{.*}} = call token @llvm.tensor.load.{{.*}}, <2 x i32> <i32 8, i32 2>, {{.*}}, <2 x i32> <i32 0, i32 16>)
; CHECK-LABEL: define internal void @tlx.matmul.8x32x16.f32.f32.f32.1(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK: %{{.*}} = call token @llvm.tensor.load.{{.*}}, <2 x i32> <i32 8, i32 2>, {{.*}}, <2 x i32> <i32 0, i32 20>)
; CHECK-LABEL: define internal void @tlx.matmul.8x32x16.f32.f32.f32.2(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" {
; CHECK-NOT: define internal

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

define void @same(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @pitch(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> <i32 0, i32 20>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @column_major(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 32, i32 16>, <2 x i32> <i32 1, i32 0>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <256 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<256 x float> %m, <2 x i32> <i32 8, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
