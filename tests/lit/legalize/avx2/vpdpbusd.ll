; With AVX-VNNI, a dot product of unsigned by signed bytes; without it, multiplications of i32.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --mattr=+avxvnni | FileCheck %s --check-prefix=VNNI --implicit-check-not=llvm.tensor.
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --check-prefix=PLAIN --implicit-check-not=llvm.tensor.

; VNNI-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" "target-features"="+avx2,+fma,+f16c,+avxvnni" "min-legal-vector-width"="256" "prefer-vector-width"="256" {
; VNNI-NEXT: %[[T:.*]] = load <8 x i32>, ptr %c, align 4
; VNNI-NEXT: %[[T_1:.*]] = load i32, ptr %a, align 1
; VNNI-NEXT: %[[T_2:.*]] = insertelement <8 x i32> undef, i32 %[[T_1]], i32 0
; VNNI-NEXT: %[[T_3:.*]] = shufflevector <8 x i32> %[[T_2]], <8 x i32> undef, <8 x i32> <{{(i32 0(, )?)+}}>
; VNNI-NEXT: %[[T_4:.*]] = load <32 x i8>, ptr %b, align 1
; VNNI-NEXT: %[[T_5:.*]] = bitcast <32 x i8> %[[T_4]] to <8 x i32>
; VNNI-NEXT: %[[ACC_1:.*]] = call <8 x i32> @llvm.x86.avx512.vpdpbusd.256(<8 x i32> %[[T]], <8 x i32> %[[T_3]], <8 x i32> %[[T_5]])
; VNNI-NEXT: store <8 x i32> %[[ACC_1]], ptr %c, align 4
; VNNI-NEXT: ret void
; VNNI-NEXT: }

; PLAIN: mul <8 x i32>
; PLAIN-NOT: vpdpbusd

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i8) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(i8) %b, <3 x i32> <i32 1, i32 8, i32 4>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <32 x i8> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 4, i32 8>)
  %rhs = call token @llvm.tensor.typeinfo(<32 x i8> %rhs.flat, <2 x i32> <i32 4, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %r = call <8 x i32> @llvm.tensor.usmma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<8 x i32> %r, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
