; A float is rounded to bfloat by integer arithmetic, to nearest even; NaN stays NaN.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = bitcast <4 x float> %[[T]] to <4 x i32>
; CHECK-NEXT: %[[T_2:.*]] = lshr <4 x i32> %[[T_1]], <i32 16, i32 16, i32 16, i32 16>
; CHECK-NEXT: %[[T_3:.*]] = and <4 x i32> %[[T_2]], <i32 1, i32 1, i32 1, i32 1>
; CHECK-NEXT: %[[T_4:.*]] = add <4 x i32> %[[T_3]], <i32 32767, i32 32767, i32 32767, i32 32767>
; CHECK-NEXT: %[[T_5:.*]] = add <4 x i32> %[[T_1]], %[[T_4]]
; CHECK-NEXT: %[[T_6:.*]] = or <4 x i32> %[[T_1]], <i32 4194304, i32 4194304, i32 4194304, i32 4194304>
; CHECK-NEXT: %[[T_7:.*]] = fcmp uno <4 x float> %[[T]], %[[T]]
; CHECK-NEXT: %[[T_8:.*]] = select <4 x i1> %[[T_7]], <4 x i32> %[[T_6]], <4 x i32> %[[T_5]]
; CHECK-NEXT: %[[T_9:.*]] = lshr <4 x i32> %[[T_8]], <i32 16, i32 16, i32 16, i32 16>
; CHECK-NEXT: %[[T_10:.*]] = trunc <4 x i32> %[[T_9]] to <4 x i16>
; CHECK-NEXT: store <4 x i16> %[[T_10]], ptr %c, align 2
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <4 x float> @llvm.tensor.tovector(token %x)
  %w = fptrunc <4 x float> %v to <4 x bfloat>
  %y = call token @llvm.tensor.typeinfo(<4 x bfloat> %w, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
