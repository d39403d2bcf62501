; Four rows, interleaved twice, are the four columns.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds float, ptr %a, i64 4
; CHECK-NEXT: %[[T_2:.*]] = load <4 x float>, ptr %[[T_1]], align 4
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %a, i64 8
; CHECK-NEXT: %[[T_4:.*]] = load <4 x float>, ptr %[[T_3]], align 4
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds float, ptr %a, i64 12
; CHECK-NEXT: %[[T_6:.*]] = load <4 x float>, ptr %[[T_5]], align 4
; CHECK-NEXT: %[[T_7:.*]] = shufflevector <4 x float> %[[T]], <4 x float> %[[T_4]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %[[T_8:.*]] = shufflevector <4 x float> %[[T]], <4 x float> %[[T_4]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: %[[T_9:.*]] = shufflevector <4 x float> %[[T_2]], <4 x float> %[[T_6]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %[[T_10:.*]] = shufflevector <4 x float> %[[T_2]], <4 x float> %[[T_6]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: %[[T_11:.*]] = shufflevector <4 x float> %[[T_7]], <4 x float> %[[T_9]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %[[T_12:.*]] = shufflevector <4 x float> %[[T_7]], <4 x float> %[[T_9]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: %[[T_13:.*]] = shufflevector <4 x float> %[[T_8]], <4 x float> %[[T_10]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %[[T_14:.*]] = shufflevector <4 x float> %[[T_8]], <4 x float> %[[T_10]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: store <4 x float> %[[T_11]], ptr %c, align 4
; CHECK-NEXT: %[[T_15:.*]] = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT: store <4 x float> %[[T_12]], ptr %[[T_15]], align 4
; CHECK-NEXT: %[[T_16:.*]] = getelementptr inbounds float, ptr %c, i64 8
; CHECK-NEXT: store <4 x float> %[[T_13]], ptr %[[T_16]], align 4
; CHECK-NEXT: %[[T_17:.*]] = getelementptr inbounds float, ptr %c, i64 12
; CHECK-NEXT: store <4 x float> %[[T_14]], ptr %[[T_17]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <16 x float> @llvm.tensor.transpose(token %x, <2 x i32> <i32 0, i32 1>)
  %y = call token @llvm.tensor.typeinfo(<16 x float> %v, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
