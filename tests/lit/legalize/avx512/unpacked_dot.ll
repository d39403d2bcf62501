; Rows of an unpacked B are interleaved in registers for a dot product.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: %[[T:.*]] = load <16 x float>, ptr %c, align 4
; CHECK-NEXT: %[[T_1:.*]] = load i32, ptr %a, align 2
; CHECK-NEXT: %[[T_2:.*]] = insertelement <4 x i32> undef, i32 %[[T_1]], i32 0
; CHECK-NEXT: %[[T_3:.*]] = shufflevector <4 x i32> %[[T_2]], <4 x i32> undef, <16 x i32> <{{(i32 0(, )?)+}}>
; CHECK-NEXT: %[[T_4:.*]] = load <16 x i16>, ptr %b, align 2
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds i16, ptr %b, i64 16
; CHECK-NEXT: %[[T_6:.*]] = load <16 x i16>, ptr %[[T_5]], align 2
; CHECK-NEXT: %[[T_J:.*]] = shufflevector <16 x i16> %[[T_4]], <16 x i16> %[[T_6]], <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
; CHECK-NEXT: %[[T_7:.*]] = shufflevector <32 x i16> %[[T_J]], <32 x i16> undef, <32 x i32> <i32 0, i32 16, i32 1, i32 17, i32 2, i32 18, i32 3, i32 19, i32 4, i32 20, i32 5, i32 21, i32 6, i32 22, i32 7, i32 23, i32 8, i32 24, i32 9, i32 25, i32 10, i32 26, i32 11, i32 27, i32 12, i32 28, i32 13, i32 29, i32 14, i32 30, i32 15, i32 31>
; CHECK-NEXT: %[[T_8:.*]] = bitcast <32 x i16> %[[T_7]] to <16 x i32>
; CHECK-NEXT: %[[ACC_1:.*]] = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> %[[T]], <16 x i32> %[[T_3]], <16 x i32> %[[T_8]])
; CHECK-NEXT: store <16 x float> %[[ACC_1]], ptr %c, align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %r = call <16 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<16 x float> %r, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
