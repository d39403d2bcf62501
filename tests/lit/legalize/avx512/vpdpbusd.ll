; Four bytes of A are loaded as one i32 and splat; a packed row of B is loaded unchanged.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512bf16,+avx512vnni,+f16c,+fma" "min-legal-vector-width"="512" "prefer-vector-width"="512" {
; CHECK-NEXT: %[[T:.*]] = load <16 x i32>, ptr %c, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i32, ptr %c, i64 16
; CHECK-NEXT: %[[T_2:.*]] = load <16 x i32>, ptr %[[T_1]], align 4
; CHECK-NEXT: %[[T_3:.*]] = load <64 x i8>, ptr %b, align 1
; CHECK-NEXT: %[[T_4:.*]] = bitcast <64 x i8> %[[T_3]] to <16 x i32>
; CHECK-NEXT: %[[T_5:.*]] = load i32, ptr %a, align 1
; CHECK-NEXT: %[[T_6:.*]] = insertelement <16 x i32> undef, i32 %[[T_5]], i32 0
; CHECK-NEXT: %[[T_7:.*]] = shufflevector <16 x i32> %[[T_6]], <16 x i32> undef, <16 x i32> <{{(i32 0(, )?)+}}>
; CHECK-NEXT: %[[ACC_1:.*]] = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %[[T]], <16 x i32> %[[T_7]], <16 x i32> %[[T_4]])
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds i8, ptr %a, i64 4
; CHECK-NEXT: %[[T_9:.*]] = load i32, ptr %[[T_8]], align 1
; CHECK-NEXT: %[[T_10:.*]] = insertelement <16 x i32> undef, i32 %[[T_9]], i32 0
; CHECK-NEXT: %[[T_11:.*]] = shufflevector <16 x i32> %[[T_10]], <16 x i32> undef, <16 x i32> <{{(i32 0(, )?)+}}>
; CHECK-NEXT: %[[ACC_2:.*]] = call <16 x i32> @llvm.x86.avx512.vpdpbusd.512(<16 x i32> %[[T_2]], <16 x i32> %[[T_11]], <16 x i32> %[[T_4]])
; CHECK-NEXT: store <16 x i32> %[[ACC_1]], ptr %c, align 4
; CHECK-NEXT: %[[T_12:.*]] = getelementptr inbounds i32, ptr %c, i64 16
; CHECK-NEXT: store <16 x i32> %[[ACC_2]], ptr %[[T_12]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 1, i32 16, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <64 x i8> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 4, i32 16>)
  %rhs = call token @llvm.tensor.typeinfo(<64 x i8> %rhs.flat, <2 x i32> <i32 4, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %r = call <32 x i32> @llvm.tensor.usmma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<32 x i32> %r, <2 x i32> <i32 2, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
