; A transpose to the memory order that a tile already has is a no-op.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x float>, ptr %a, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds float, ptr %a, i64 4
; CHECK-NEXT: %[[T_2:.*]] = load <4 x float>, ptr %[[T_1]], align 4
; CHECK-NEXT: store <4 x float> %[[T]], ptr %c, align 4
; CHECK-NEXT: %[[T_3:.*]] = getelementptr inbounds float, ptr %c, i64 4
; CHECK-NEXT: store <4 x float> %[[T_2]], ptr %[[T_3]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <8 x float> @llvm.tensor.transpose(token %x, <2 x i32> <i32 0, i32 1>)
  %y = call token @llvm.tensor.typeinfo(<8 x float> %v, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
