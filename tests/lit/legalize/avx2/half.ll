; F16C converts half: a plain cast of as many elements as a register of float holds.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" "target-features"="+avx2,+fma,+f16c" "min-legal-vector-width"="256" "prefer-vector-width"="256" {
; CHECK-NEXT: %[[T_1:.*]] = load <8 x i16>, ptr %a, align 2
; CHECK-NEXT: %[[T:.*]] = getelementptr inbounds i16, ptr %a, i64 8
; CHECK-NEXT: %[[T_2:.*]] = load <8 x i16>, ptr %[[T]], align 2
; CHECK-NEXT: %[[T_3:.*]] = bitcast <8 x i16> %[[T_1]] to <8 x half>
; CHECK-NEXT: %[[T_4:.*]] = fpext <8 x half> %[[T_3]] to <8 x float>
; CHECK-NEXT: %[[T_5:.*]] = bitcast <8 x i16> %[[T_2]] to <8 x half>
; CHECK-NEXT: %[[T_6:.*]] = fpext <8 x half> %[[T_5]] to <8 x float>
; CHECK-NEXT: store <8 x float> %[[T_4]], ptr %c, align 4
; CHECK-NEXT: %[[T_7:.*]] = getelementptr inbounds float, ptr %c, i64 8
; CHECK-NEXT: store <8 x float> %[[T_6]], ptr %[[T_7]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(half) %a, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <16 x half> @llvm.tensor.tovector(token %x)
  %w = fpext <16 x half> %v to <16 x float>
  %y = call token @llvm.tensor.typeinfo(<16 x float> %w, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
