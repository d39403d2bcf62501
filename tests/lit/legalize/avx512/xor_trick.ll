; Signed by signed bytes: A xor 128 is unsigned, and 128 times the column sums of B, computed by the same dot product, is
; subtracted from the initial sums.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --tile=1x16 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define internal void @tlx.matmul.1x16x128.i8.i8.i32.ss(ptr noalias %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK: %[[WORD:.*]] = bitcast <4 x i8> <i8 -128, i8 -128, i8 -128, i8 -128> to i32
; CHECK: %[[FIRST:.*]] = insertelement <16 x i32> undef, i32 %[[WORD]], i32 0
; CHECK: %[[WORDS:.*]] = shufflevector <16 x i32> %[[FIRST]], <16 x i32> undef,
; CHECK: %[[SUM:.*]] = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %{{.*}}, <16 x i32> %[[WORDS]], <16 x i32> %{{.*}})
; CHECK: %[[NEGATED:.*]] = sub <16 x i32> zeroinitializer, %[[SUM]]
; CHECK-NEXT: store <16 x i32> %[[NEGATED]], ptr %[[SUMS:.*]], align 4
; CHECK: xor <64 x i8> %{{.*}}, <{{(i8 -128(, )?)+}}>
; CHECK: %[[START:.*]] = load <16 x i32>, ptr %[[SUMS]], align 4
; CHECK: phi <16 x i32> [ %[[START]], %{{.*}} ]
; CHECK: call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1, i32 128>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 128, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x i32> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16 x i32> %m, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
