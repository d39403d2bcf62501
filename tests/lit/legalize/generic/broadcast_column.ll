; A column broadcast over the tile is a splat for each row.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <1 x i32>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i32, ptr %a, i64 1
; CHECK-NEXT: %[[T_2:.*]] = load <1 x i32>, ptr %[[T_1]], align 4
; CHECK-NEXT: %[[T_3:.*]] = shufflevector <1 x i32> %[[T]], <1 x i32> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[T_4:.*]] = shufflevector <1 x i32> %[[T]], <1 x i32> undef, <2 x i32> <i32 0, i32 0>
; CHECK-NEXT: %[[T_5:.*]] = shufflevector <1 x i32> %[[T_2]], <1 x i32> undef, <4 x i32> <i32 0, i32 0, i32 0, i32 0>
; CHECK-NEXT: %[[T_6:.*]] = shufflevector <1 x i32> %[[T_2]], <1 x i32> undef, <2 x i32> <i32 0, i32 0>
; CHECK-NEXT: store <4 x i32> %[[T_3]], ptr %c, align 4
; CHECK-NEXT: %[[T_7:.*]] = getelementptr inbounds i32, ptr %c, i64 4
; CHECK-NEXT: store <2 x i32> %[[T_4]], ptr %[[T_7]], align 4
; CHECK-NEXT: %[[T_8:.*]] = getelementptr inbounds i32, ptr %c, i64 6
; CHECK-NEXT: store <4 x i32> %[[T_5]], ptr %[[T_8]], align 4
; CHECK-NEXT: %[[T_9:.*]] = getelementptr inbounds i32, ptr %c, i64 10
; CHECK-NEXT: store <2 x i32> %[[T_6]], ptr %[[T_9]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(i32) %a, <2 x i32> <i32 2, i32 1>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <12 x i32> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 2, i32 6>, <2 x i32> <i32 0, i32 1>)
  %y = call token @llvm.tensor.typeinfo(<12 x i32> %v, <2 x i32> <i32 2, i32 6>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
