; Pairs of bfloat are i32, the operand type in LLVM 14, which later versions upgrade.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: %[[T:.*]] = load <16 x float>, ptr %c, align 4
; CHECK-NEXT: %[[T_1:.*]] = load i32, ptr %a, align 2
; CHECK-NEXT: %[[T_2:.*]] = insertelement <4 x i32> undef, i32 %[[T_1]], i32 0
; CHECK-NEXT: %[[T_3:.*]] = shufflevector <4 x i32> %[[T_2]], <4 x i32> undef, <16 x i32> <{{(i32 0(, )?)+}}>
; CHECK-NEXT: %[[T_4:.*]] = load <32 x i16>, ptr %b, align 2
; CHECK-NEXT: %[[T_5:.*]] = bitcast <32 x i16> %[[T_4]] to <16 x i32>
; CHECK-NEXT: %[[ACC_1:.*]] = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> %[[T]], <16 x i32> %[[T_3]], <16 x i32> %[[T_5]])
; CHECK-NEXT: store <16 x float> %[[ACC_1]], ptr %c, align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 1, i32 16, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <32 x bfloat> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 2, i32 16>)
  %rhs = call token @llvm.tensor.typeinfo(<32 x bfloat> %rhs.flat, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %r = call <16 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<16 x float> %r, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
