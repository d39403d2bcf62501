; Arithmetic on a tile is arithmetic on each register; flags are kept, constants are split into registers.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds float, ptr %a, i64 4
; CHECK-NEXT: %[[T_2:.*]] = load <4 x float>, ptr %[[T_1]], align 4
; CHECK-NEXT: %[[T_3:.*]] = fmul nnan nsz <4 x float> %[[T]], <float 1.0, float 2.0, float 3.0, float 4.0>
; CHECK-NEXT: %[[T_4:.*]] = fmul nnan nsz <4 x float> %[[T_2]], <float 5.0, float 6.0, float 7.0, float 8.0>
; CHECK-NEXT: store <4 x float> %[[T_3]], ptr %c, align 4
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT: store <4 x float> %[[T_4]], ptr %[[T_5]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <8 x float> @llvm.tensor.tovector(token %x)
  %w = fmul nnan nsz <8 x float> %v, <float 1.0, float 2.0, float 3.0, float 4.0, float 5.0, float 6.0, float 7.0, float 8.0>
  %y = call token @llvm.tensor.typeinfo(<8 x float> %w, <2 x i32> <i32 1, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
