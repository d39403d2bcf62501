; The output of stage 1 may be lowered again: its loops are marked, and now contain a buffer, to which each iteration writes
; its own B. It is packed in each iteration, not once before the loop.
; RUN: grep -v '^;' %s > %t.ll && tlx-lower %t.ll --target=amx --stop-after=to-2d -o %t.2d.ll
; RUN: tlx-lower %t.2d.ll --target=amx --check=1 -o %t.o.ll
; RUN: tlx-lower %t.2d.ll --target=amx --stop-after=to-tiles -o - | FileCheck %s

; CHECK-NOT:   .pack(
; CHECK-LABEL: define void @f(
; CHECK-NOT:   .pack(
define void @f(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <3 x i32> <i32 2, i32 100, i32 32>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <3 x i32> <i32 32, i32 64, i32 2>, <3 x i32> <i32 1, i32 2, i32 0>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %r = call <12800 x float> @llvm.tensor.matmul(token %x, token %y)
  store <12800 x float> %r, ptr %c
  ret void
}
