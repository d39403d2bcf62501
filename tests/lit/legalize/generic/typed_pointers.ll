; With typed pointers, addresses are cast to pointers to registers.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: define internal void @tlx.matmul.{{.*}}(float* noalias %c, float* %a, float* %b)
; CHECK: load <4 x float>, <4 x float>* %{{.*}}, align 4
; CHECK: call <4 x float> @llvm.fmuladd.v4f32(
; CHECK-NOT: {{[( ]}}ptr{{[ ,)]}}

define void @f(float* noalias %c, float* %a, float* %b) {
  %lhs = call token @llvm.tensor.load(float* %a, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(float* %b, <2 x i32> <i32 5, i32 13>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <39 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<39 x float> %m, <2 x i32> <i32 3, i32 13>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
