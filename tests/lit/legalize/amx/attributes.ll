; A kernel has the features of AMX in addition to those of AVX-512.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=amx --no-request-permission | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: define internal void @tlx.matmul.{{.*}}(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma,+avx512vbmi,+amx-tile,+amx-bf16,+amx-int8" "min-legal-vector-width"="512" "prefer-vector-width"="512" {

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
