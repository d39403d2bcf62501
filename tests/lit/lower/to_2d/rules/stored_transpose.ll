; A product whose transpose is stored is written in the order of the store: columns of the result are rows in memory.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=generic -o - | FileCheck %s

; CHECK-LABEL: define void @turned(
; CHECK-NOT:     alloca
; CHECK:         call void @llvm.tensor.store.p0.v2i32(ptr %r, token %product, <2 x i32> <i32 0, i32 6>)
; CHECK-NEXT:    ret void
define void @turned(ptr noalias %r, ptr noalias %p, ptr noalias %q) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %p, <2 x i32> <i32 6, i32 7>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %q, <2 x i32> <i32 7, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %c = call <48 x float> @llvm.tensor.matmul(token %a, token %b)
  %t = call token @llvm.tensor.typeinfo(<48 x float> %c, <2 x i32> <i32 6, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  %u = call <48 x float> @llvm.tensor.transpose(token %t, <2 x i32> <i32 1, i32 0>)
  %v = call token @llvm.tensor.typeinfo(<48 x float> %u, <2 x i32> <i32 8, i32 6>, <2 x i32> <i32 1, i32 0>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %r, token %v, <2 x i32> zeroinitializer)
  ret void
}
