; There are no masked loads of 16-bit elements: a shorter vector is loaded and extended with zeros.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" "target-features"="+avx2,+fma,+f16c" "min-legal-vector-width"="256" "prefer-vector-width"="256" {
; CHECK-NEXT: %[[T:.*]] = load <11 x i16>, ptr %a, align 2
; CHECK-NEXT: %[[T_1:.*]] = shufflevector <11 x i16> %[[T]], <11 x i16> undef, <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 undef, i32 undef, i32 undef, i32 undef, i32 undef>
; CHECK-NEXT: %[[T_2:.*]] = select <16 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false, i1 false>, <16 x i16> %[[T_1]], <16 x i16> zeroinitializer
; CHECK-NEXT: %[[T_3:.*]] = add <16 x i16> %[[T_2]], %[[T_2]]
; CHECK-NEXT: %[[T_4:.*]] = shufflevector <16 x i16> %[[T_3]], <16 x i16> undef, <11 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10>
; CHECK-NEXT: store <11 x i16> %[[T_4]], ptr %c, align 2
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 5>, <2 x i32> <i32 0, i32 0>)
  %v = call <16 x i16> @llvm.tensor.tovector(token %x)
  %w = add <16 x i16> %v, %v
  %y = call token @llvm.tensor.typeinfo(<16 x i16> %w, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 5>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
