; With more rows than registers across, B is loaded first and kept in registers.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %c, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT: %[[T_2:.*]] = load <4 x float>, ptr %[[T_1]], align 4
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %c, i64 8
; CHECK-NEXT: %[[T_4:.*]] = load <4 x float>, ptr %[[T_3]], align 4
; CHECK-NEXT: %[[T_5:.*]] = load <4 x float>, ptr %b, align 4
; CHECK-NEXT: %[[T_6:.*]] = load float, ptr %a, align 4
; CHECK-NEXT: %[[T_7:.*]] = insertelement <4 x float> undef, float %[[T_6]], i32 0
; CHECK-NEXT: %[[T_8:.*]] = shufflevector <4 x float> %[[T_7]], <4 x float> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[ACC_1:.*]] = call <4 x float> @llvm.fmuladd.v4f32(<4 x float> %[[T_8]], <4 x float> %[[T_5]], <4 x float> %[[T]])
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds float, ptr %a, i64 1
; CHECK-NEXT: %[[T_10:.*]] = load float, ptr %[[T_9]], align 4
; CHECK-NEXT: %[[T_11:.*]] = insertelement <4 x float> undef, float %[[T_10]], i32 0
; CHECK-NEXT: %[[T_12:.*]] = shufflevector <4 x float> %[[T_11]], <4 x float> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[ACC_2:.*]] = call <4 x float> @llvm.fmuladd.v4f32(<4 x float> %[[T_12]], <4 x float> %[[T_5]], <4 x float> %[[T_2]])
; CHECK-NEXT: %[[T_13:.*]] = getelementptr inbounds float, ptr %a, i64 2
; CHECK-NEXT: %[[T_14:.*]] = load float, ptr %[[T_13]], align 4
; CHECK-NEXT: %[[T_15:.*]] = insertelement <4 x float> undef, float %[[T_14]], i32 0
; CHECK-NEXT: %[[T_16:.*]] = shufflevector <4 x float> %[[T_15]], <4 x float> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[ACC_3:.*]] = call <4 x float> @llvm.fmuladd.v4f32(<4 x float> %[[T_16]], <4 x float> %[[T_5]], <4 x float> %[[T_4]])
; CHECK-NEXT: store <4 x float> %[[ACC_1]], ptr %c, align 4
; CHECK-NEXT: %[[T_17:.*]] = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT: store <4 x float> %[[ACC_2]], ptr %[[T_17]], align 4
; CHECK-NEXT: %[[T_18:.*]] = getelementptr inbounds float, ptr %c, i64 8
; CHECK-NEXT: store <4 x float> %[[ACC_3]], ptr %[[T_18]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(float) %c, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %r = call <12 x float> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<12 x float> %r, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
