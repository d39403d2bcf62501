; In a column-major tile, neighbours along K are transposed as one word: bitcast, transpose, bitcast.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x i16>, ptr %a, align 2
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i16, ptr %a, i64 4
; CHECK-NEXT: %[[T_2:.*]] = load <4 x i16>, ptr %[[T_1]], align 2
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds i16, ptr %a, i64 8
; CHECK-NEXT: %[[T_4:.*]] = load <4 x i16>, ptr %[[T_3]], align 2
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds i16, ptr %a, i64 12
; CHECK-NEXT: %[[T_6:.*]] = load <4 x i16>, ptr %[[T_5]], align 2
; CHECK-NEXT: %[[T_7:.*]] = bitcast <4 x i16> %[[T]] to <2 x i32>
; CHECK-NEXT: %[[T_8:.*]] = bitcast <4 x i16> %[[T_2]] to <2 x i32>
; CHECK-NEXT: %[[T_9:.*]] = bitcast <4 x i16> %[[T_4]] to <2 x i32>
; CHECK-NEXT: %[[T_10:.*]] = bitcast <4 x i16> %[[T_6]] to <2 x i32>
; CHECK-NEXT: %[[T_11:.*]] = shufflevector <2 x i32> %[[T_7]], <2 x i32> undef, <4 x i32> <i32 0, i32 1, i32 undef, i32 undef>
; CHECK-NEXT: %[[T_12:.*]] = shufflevector <2 x i32> %[[T_8]], <2 x i32> undef, <4 x i32> <i32 0, i32 1, i32 undef, i32 undef>
; CHECK-NEXT: %[[T_13:.*]] = shufflevector <2 x i32> %[[T_9]], <2 x i32> undef, <4 x i32> <i32 0, i32 1, i32 undef, i32 undef>
; CHECK-NEXT: %[[T_14:.*]] = shufflevector <2 x i32> %[[T_10]], <2 x i32> undef, <4 x i32> <i32 0, i32 1, i32 undef, i32 undef>
; CHECK-NEXT: %[[T_15:.*]] = shufflevector <4 x i32> %[[T_11]], <4 x i32> %[[T_13]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %[[T_16:.*]] = shufflevector <4 x i32> %[[T_11]], <4 x i32> %[[T_13]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: %[[T_17:.*]] = shufflevector <4 x i32> %[[T_12]], <4 x i32> %[[T_14]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %[[T_18:.*]] = shufflevector <4 x i32> %[[T_12]], <4 x i32> %[[T_14]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: %[[T_19:.*]] = shufflevector <4 x i32> %[[T_15]], <4 x i32> %[[T_17]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %[[T_20:.*]] = shufflevector <4 x i32> %[[T_15]], <4 x i32> %[[T_17]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: %{{.*}} = shufflevector <4 x i32> %[[T_16]], <4 x i32> %[[T_18]], <4 x i32> <i32 0, i32 4, i32 1, i32 5>
; CHECK-NEXT: %{{.*}} = shufflevector <4 x i32> %[[T_16]], <4 x i32> %[[T_18]], <4 x i32> <i32 2, i32 6, i32 3, i32 7>
; CHECK-NEXT: %[[T_23:.*]] = bitcast <4 x i32> %[[T_19]] to <8 x i16>
; CHECK-NEXT: %[[T_24:.*]] = bitcast <4 x i32> %[[T_20]] to <8 x i16>
; CHECK-NEXT: store <8 x i16> %[[T_23]], ptr %c, align 2
; CHECK-NEXT: %[[T_25:.*]] = getelementptr inbounds i16, ptr %c, i64 8
; CHECK-NEXT: store <8 x i16> %[[T_24]], ptr %[[T_25]], align 2
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 4, i32 4>, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <16 x bfloat> @llvm.tensor.reshape.block(token %x, <1 x i32> <i32 0>, <1 x i32> <i32 2>)
  %y = call token @llvm.tensor.typeinfo(<16 x bfloat> %v, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
