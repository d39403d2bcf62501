; Loops that differ in the names of values only share a function; others do not.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx512 -o - | FileCheck %s

; CHECK-LABEL: define void @two(
; CHECK:         call void @tlx.nest.two(ptr %a, ptr %b, ptr %c)
; CHECK:         call void @tlx.nest.two(ptr %b, ptr %a, ptr %d)
; CHECK-LABEL: define void @third(
; CHECK:         call void @tlx.nest.two(ptr %p, ptr %q, ptr %r)
; CHECK-LABEL: define void @other(
; CHECK:         call void @tlx.nest.other(ptr %a, ptr %b, ptr %c)
; CHECK:       define internal void @tlx.nest.two(
; CHECK-NOT:   define internal void @tlx.nest.t
; CHECK:       define internal void @tlx.nest.other(
; CHECK-NOT:   define internal void @tlx.nest.t

define void @two(ptr noalias %a, ptr noalias %b, ptr noalias %c, ptr noalias %d) {
  %x1 = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 20, i32 3, i32 20>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y1 = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 20, i32 20, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m1 = call <960 x float> @llvm.tensor.matmul(token %x1, token %y1)
  %t1 = call token @llvm.tensor.typeinfo(<960 x float> %m1, <3 x i32> <i32 20, i32 3, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t1, <3 x i32> zeroinitializer)
  %x2 = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 20, i32 3, i32 20>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y2 = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 20, i32 20, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m2 = call <960 x float> @llvm.tensor.matmul(token %x2, token %y2)
  %t2 = call token @llvm.tensor.typeinfo(<960 x float> %m2, <3 x i32> <i32 20, i32 3, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %d, token %t2, <3 x i32> zeroinitializer)
  ret void
}

define void @third(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %x1 = call token @llvm.tensor.load(ptr elementtype(float) %p, <3 x i32> <i32 20, i32 3, i32 20>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y1 = call token @llvm.tensor.load(ptr elementtype(float) %q, <3 x i32> <i32 20, i32 20, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m1 = call <960 x float> @llvm.tensor.matmul(token %x1, token %y1)
  %t1 = call token @llvm.tensor.typeinfo(<960 x float> %m1, <3 x i32> <i32 20, i32 3, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t1, <3 x i32> zeroinitializer)
  ret void
}

define void @other(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x1 = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 21, i32 3, i32 20>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y1 = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 21, i32 20, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m1 = call <1008 x float> @llvm.tensor.matmul(token %x1, token %y1)
  %t1 = call token @llvm.tensor.typeinfo(<1008 x float> %m1, <3 x i32> <i32 21, i32 3, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t1, <3 x i32> zeroinitializer)
  ret void
}
