; Padded rows of 32- and 64-bit elements are loaded and stored with masks, of as
; many elements as the next power of two; a whole half of a register needs no mask.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" "target-features"="+avx2,+fma,+f16c" "min-legal-vector-width"="256" "prefer-vector-width"="256" {
; CHECK-NEXT: %[[T:.*]] = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %a, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>, <8 x float> zeroinitializer)
; CHECK-NEXT: %[[T_1:.*]] = shufflevector <8 x float> %[[T]], <8 x float> undef, <7 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6>
; CHECK-NEXT: %[[T_2:.*]] = fadd <7 x float> %[[T_1]], %[[T_1]]
; CHECK-NEXT: %[[T_3:.*]] = shufflevector <7 x float> %[[T_2]], <7 x float> undef, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 undef>
; CHECK-NEXT: call void @llvm.masked.store.v8f32.p0(<8 x float> %[[T_3]], ptr %c, i32 4, <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>)
; CHECK-NEXT: ret void
; CHECK-NEXT: }
; CHECK-LABEL: define void @g(ptr %c, ptr %a) nounwind noinline "no-builtins" "target-features"="+avx2,+fma,+f16c" "min-legal-vector-width"="256" "prefer-vector-width"="256" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = shufflevector <4 x float> %[[T]], <4 x float> undef, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 undef, i32 undef, i32 undef, i32 undef>
; CHECK-NEXT: %[[T_2:.*]] = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false, i1 false>, <8 x float> %[[T_1]], <8 x float> zeroinitializer
; CHECK-NEXT: %[[T_3:.*]] = fadd <8 x float> %[[T_2]], %[[T_2]]
; CHECK-NEXT: %[[T_4:.*]] = shufflevector <8 x float> %[[T_3]], <8 x float> undef, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
; CHECK-NEXT: store <4 x float> %[[T_4]], ptr %c, align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 2>, <2 x i32> <i32 0, i32 0>)
  %v = call <7 x float> @llvm.tensor.tovector(token %x)
  %w = fadd <7 x float> %v, %v
  %y = call token @llvm.tensor.typeinfo(<7 x float> %w, <2 x i32> <i32 1, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 2>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}

define void @g(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>, <2 x i32> <i32 0, i32 0>)
  %v = call <8 x float> @llvm.tensor.tovector(token %x)
  %w = fadd <8 x float> %v, %v
  %y = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 4>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
