; A remainder of twelve elements is not stored non-temporally: 24 bytes are not aligned.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 | FileCheck %s --implicit-check-not="align 24"

; CHECK-LABEL: define void @f(
; CHECK: store <16 x i16> %{{.*}}, ptr %{{.*}}, align 32, !nontemporal
; CHECK-NOT: nontemporal
; CHECK: ret void

define void @f(ptr %c, ptr %a) "tlx-stage"="tiles" {
  %x = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 1, i32 28>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %x, <2 x i32> zeroinitializer), !nontemporal !0
  ret void
}

!0 = !{i32 1}
