; Without a dot product instruction, a packed tile is read with a shuffle for each row.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a, ptr %b) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x i32>, ptr %c, align 4
; CHECK-NEXT: %[[T_1:.*]] = load i16, ptr %a, align 2
; CHECK-NEXT: %[[T_2:.*]] = insertelement <1 x i16> undef, i16 %[[T_1]], i32 0
; CHECK-NEXT: %[[T_3:.*]] = zext <1 x i16> %[[T_2]] to <1 x i32>
; CHECK-NEXT: %[[T_4:.*]] = extractelement <1 x i32> %[[T_3]], i32 0
; CHECK-NEXT: %[[T_5:.*]] = insertelement <4 x i32> undef, i32 %[[T_4]], i32 0
; CHECK-NEXT: %[[T_6:.*]] = shufflevector <4 x i32> %[[T_5]], <4 x i32> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[T_7:.*]] = load <8 x i16>, ptr %b, align 2
; CHECK-NEXT: %[[T_8:.*]] = shufflevector <8 x i16> %[[T_7]], <8 x i16> undef, <4 x i32> <i32 0, i32 2, i32 4, i32 6>
; CHECK-NEXT: %[[T_9:.*]] = zext <4 x i16> %[[T_8]] to <4 x i32>
; CHECK-NEXT: %[[T_10:.*]] = mul <4 x i32> %[[T_6]], %[[T_9]]
; CHECK-NEXT: %[[T_11:.*]] = add <4 x i32> %[[T]], %[[T_10]]
; CHECK-NEXT: %[[T_12:.*]] = getelementptr inbounds i16, ptr %a, i64 1
; CHECK-NEXT: %[[T_13:.*]] = load i16, ptr %[[T_12]], align 2
; CHECK-NEXT: %[[T_14:.*]] = insertelement <1 x i16> undef, i16 %[[T_13]], i32 0
; CHECK-NEXT: %[[T_15:.*]] = zext <1 x i16> %[[T_14]] to <1 x i32>
; CHECK-NEXT: %[[T_16:.*]] = extractelement <1 x i32> %[[T_15]], i32 0
; CHECK-NEXT: %[[T_17:.*]] = insertelement <4 x i32> undef, i32 %[[T_16]], i32 0
; CHECK-NEXT: %[[T_18:.*]] = shufflevector <4 x i32> %[[T_17]], <4 x i32> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[T_19:.*]] = load <8 x i16>, ptr %b, align 2
; CHECK-NEXT: %[[T_20:.*]] = shufflevector <8 x i16> %[[T_19]], <8 x i16> undef, <4 x i32> <i32 1, i32 3, i32 5, i32 7>
; CHECK-NEXT: %[[T_21:.*]] = zext <4 x i16> %[[T_20]] to <4 x i32>
; CHECK-NEXT: %[[T_22:.*]] = mul <4 x i32> %[[T_18]], %[[T_21]]
; CHECK-NEXT: %[[T_23:.*]] = add <4 x i32> %[[T_11]], %[[T_22]]
; CHECK-NEXT: store <4 x i32> %[[T_23]], ptr %c, align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a, ptr %b) "tlx-stage"="tiles" {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 1, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %rhs.packed = call token @llvm.tensor.load(ptr elementtype(i16) %b, <3 x i32> <i32 1, i32 4, i32 2>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> <i32 0, i32 0, i32 0>, <3 x i32> <i32 0, i32 0, i32 0>)
  %rhs.flat = call <8 x i16> @llvm.tensor.reshape.permute(token %rhs.packed, <3 x i32> <i32 0, i32 2, i32 1>, <2 x i32> <i32 2, i32 4>)
  %rhs = call token @llvm.tensor.typeinfo(<8 x i16> %rhs.flat, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  %r = call <4 x i32> @llvm.tensor.umma(token %acc, token %lhs, token %rhs)
  %out = call token @llvm.tensor.typeinfo(<4 x i32> %r, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %out, <2 x i32> <i32 0, i32 0>)
  ret void
}
