; A single product is not split, however many tiles of a matrix unit its sum fills: its rows are not copied first.
; RUN: grep -v '^;' %s | tlx-lower - --stop-after=to-2d --target=amx -o - | FileCheck %s

; CHECK-LABEL: define void @row(
; CHECK-NOT:   alloca
; CHECK:       call <1024 x float> @llvm.tensor.matmul
; CHECK-NOT:   @llvm.tensor.smma
; CHECK:       ret void
define void @row(ptr %a, ptr %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 1024, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 1, i32 1024>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
