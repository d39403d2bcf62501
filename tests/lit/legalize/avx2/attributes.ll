; A kernel carries the features that it needs and its register width; the function that calls it carries none.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr noalias %c, ptr %a, ptr %b) {
; CHECK-NEXT: call void @tlx.matmul.2x8x3.f32.f32.f32(ptr %c, ptr %a, ptr %b)
; CHECK-NEXT: ret void
; CHECK: define internal void @tlx.matmul.{{.*}}(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx2,+fma,+f16c" "min-legal-vector-width"="256" "prefer-vector-width"="256" {

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 3>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 3, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %m, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
