; A kernel has its features; the width attributes keep LLVM from splitting 512-bit registers on machines that prefer 256.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.2x16x3.f32.f32.f32(ptr %c, ptr %a, ptr %b)
; CHECK-NEXT: ret void
; CHECK: define internal void @tlx.matmul.{{.*}}(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 3, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<32 x float> %m, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
