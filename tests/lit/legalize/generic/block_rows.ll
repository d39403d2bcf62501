; reshape.block of the rows by two interleaves pairs of rows: VNNI packing. bfloat is kept as i16.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <8 x i16>, ptr %a, align 2
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i16, ptr %a, i64 8
; CHECK-NEXT: %[[T_2:.*]] = load <8 x i16>, ptr %[[T_1]], align 2
; CHECK-NEXT: %[[T_3:.*]] = shufflevector <8 x i16> %[[T]], <8 x i16> %[[T_2]], <8 x i32> <i32 0, i32 8, i32 1, i32 9, i32 2, i32 10, i32 3, i32 11>
; CHECK-NEXT: %[[T_4:.*]] = shufflevector <8 x i16> %[[T]], <8 x i16> %[[T_2]], <8 x i32> <i32 4, i32 12, i32 5, i32 13, i32 6, i32 14, i32 7, i32 15>
; CHECK-NEXT: store <8 x i16> %[[T_3]], ptr %c, align 2
; CHECK-NEXT: %[[T_5:.*]] = getelementptr inbounds i16, ptr %c, i64 8
; CHECK-NEXT: store <8 x i16> %[[T_4]], ptr %[[T_5]], align 2
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <16 x bfloat> @llvm.tensor.reshape.block(token %x, <1 x i32> <i32 0>, <1 x i32> <i32 2>)
  %y = call token @llvm.tensor.typeinfo(<16 x bfloat> %v, <2 x i32> <i32 1, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
