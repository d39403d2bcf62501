; A row broadcast over the tile is the same registers for each row.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK-LABEL: define void @f(ptr %c, ptr %a) nounwind noinline "no-builtins" {
; CHECK-NEXT: %[[T:.*]] = load <4 x i32>, ptr %a, align 4
; CHECK-NEXT: store <4 x i32> %[[T]], ptr %c, align 4
; CHECK-NEXT: %[[T_1:.*]] = getelementptr inbounds i32, ptr %c, i64 4
; CHECK-NEXT: store <4 x i32> %[[T]], ptr %[[T_1]], align 4
; CHECK-NEXT: ret void
; CHECK-NEXT: }

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(i32) %a, <2 x i32> <i32 1, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 0>)
  %v = call <8 x i32> @llvm.tensor.broadcast(token %x, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>)
  %y = call token @llvm.tensor.typeinfo(<8 x i32> %v, <2 x i32> <i32 2, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
  call void @llvm.tensor.store(ptr %c, token %y, <2 x i32> <i32 0, i32 0>)
  ret void
}
