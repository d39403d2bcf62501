; With few row tiles, packing a panel of B overlaps with their products, if the panel, the lines of B that it is packed from and
; A stay in L1; a deeper panel does not, and long parts of B's rows are read before the products.
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --tile=32x32 --stop-after=to-tiles -o - | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.40x336x300.i8.i8.i32.ss(
; CHECK-NOT:   jp.loop:
; CHECK:       jr.loop:
; CHECK-NOT:   jp.loop:
; CHECK:         @llvm.tensor.reshape.block
; CHECK-NOT:   jp.loop:
; CHECK:         ret void
define void @shallow(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 40, i32 300>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %q, <2 x i32> <i32 300, i32 336>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <13440 x i32> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<13440 x i32> %c, <2 x i32> <i32 40, i32 336>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}

; CHECK-LABEL: define internal void @tlx.matmul.40x336x900.i8.i8.i32.ss(
; CHECK:       kp.loop
; CHECK:       jp.loop:
; CHECK:         @llvm.tensor.reshape.block
; CHECK:       jp.end:
; CHECK:         ret void
define void @deep(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 40, i32 900>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %q, <2 x i32> <i32 900, i32 336>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <13440 x i32> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<13440 x i32> %c, <2 x i32> <i32 40, i32 336>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %t, <2 x i32> zeroinitializer)
  ret void
}
