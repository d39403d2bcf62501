; Without AVX512-BF16, bfloat is converted to float while it is packed, and the kernel does not have the feature.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --mattr=-avx512bf16 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: define internal void @tlx.matmul.{{.*}}"target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+f16c,+fma"
; CHECK: call <16 x float> @llvm.fma.v16f32(
; CHECK-NOT: dpbf16ps
; CHECK: ret void

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <32 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<32 x float> %m, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
