; Unsigned by unsigned bytes: B xor 128 is signed, and 128 times the row sums of A, as twice 64, is added to the sums.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --tile=1x16 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define internal void @tlx.matmul.1x16x64.i8.i8.i32.uu(ptr %c, ptr %a, ptr %b, ptr %acc) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK: xor <64 x i8> %{{.*}}, <{{(i8 -128(, )?)+}}>
; CHECK: %[[WORDS:.*]] = bitcast <64 x i8> <{{(i8 64(, )?)+}}> to <16 x i32>
; CHECK: %[[SUM:.*]] = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %{{.*}}, <16 x i32> %{{.*}}, <16 x i32> %[[WORDS]])
; CHECK: %[[TWICE:.*]] = add <16 x i32> %[[SUM]], %[[SUM]]
; CHECK-NEXT: %[[ONE:.*]] = extractelement <16 x i32> %[[TWICE]], i32 0
; CHECK-NEXT: store i32 %[[ONE]]
; CHECK: add <16 x i32>
; CHECK: call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i8) %b, <2 x i32> <i32 64, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x i32> @llvm.tensor.umma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16 x i32> %m, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
