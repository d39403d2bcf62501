; The last register of a row is only as wide as the remainder; narrow integers are sign-extended when they are
; used.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x i32>, ptr %c, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i32, ptr %c, i64 4
; CHECK-NEXT: %[[T_2:.*]] = load <2 x i32>, ptr %[[T_1]], align 4
; CHECK-NEXT: %[[T_3:.*]] = load i16, ptr %a, align 2
; CHECK-NEXT: %[[T_4:.*]] = insertelement <1 x i16> undef, i16 %[[T_3]], i32 0
; CHECK-NEXT: %[[T_5:.*]] = sext <1 x i16> %[[T_4]] to <1 x i32>
; CHECK-NEXT: %[[T_6:.*]] = extractelement <1 x i32> %[[T_5]], i32 0
; CHECK-NEXT: %[[T_7:.*]] = insertelement <4 x i32> undef, i32 %[[T_6]], i32 0
; CHECK-NEXT: %[[T_8:.*]] = shufflevector <4 x i32> %[[T_7]], <4 x i32> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[T_9:.*]] = load <4 x i16>, ptr %b, align 2
; CHECK-NEXT: %[[T_10:.*]] = sext <4 x i16> %[[T_9]] to <4 x i32>
; CHECK-NEXT: %[[T_11:.*]] = mul <4 x i32> %[[T_8]], %[[T_10]]
; CHECK-NEXT: %[[T_12:.*]] = add <4 x i32> %[[T]], %[[T_11]]
; CHECK-NEXT: %[[T_13:.*]] = getelementptr inbounds i16, ptr %b, i64 4
; CHECK-NEXT: %[[T_14:.*]] = load <2 x i16>, ptr %[[T_13]], align 2
; CHECK-NEXT: %[[T_15:.*]] = sext <2 x i16> %[[T_14]] to <2 x i32>
; CHECK-NEXT: %[[T_16:.*]] = insertelement <2 x i32> undef, i32 %[[T_6]], i32 0
; CHECK-NEXT: %[[T_17:.*]] = shufflevector <2 x i32> %[[T_16]], <2 x i32> undef, <2 x i32> <i32 0, i32 0>
; CHECK-NEXT: %[[T_18:.*]] = mul <2 x i32> %[[T_17]], %[[T_15]]
; CHECK-NEXT: %[[T_19:.*]] = add <2 x i32> %[[T_2]], %[[T_18]]
; CHECK-NEXT: store <4 x i32> %[[T_12]], ptr %c, align 4
; CHECK-NEXT: %[[T_20:.*]] = getelementptr inbounds i32, ptr %c, i64 4
; CHECK-NEXT: store <2 x i32> %[[T_19]], ptr %[[T_20]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 1, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i16) %b, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %r = call <6 x i32> @llvm.tensor.smma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<6 x i32> %r, <2 x i32> <i32 1, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
