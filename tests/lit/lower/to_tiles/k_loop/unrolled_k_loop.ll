; A sum of at most 16 steps is fully unrolled, three positions of K at a time; a longer one, and one of a tile that needs most of the registers, is a loop.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.8x16x16.f32.f32.f32(
; CHECK-NEXT:  entry:
; CHECK-NOT:   phi
; CHECK-COUNT-6: call <128 x float> @llvm.tensor.smma.
; CHECK-NOT:   llvm.tensor.smma
; CHECK:       ret void

; CHECK-LABEL: define internal void @tlx.matmul.8x16x17.f32.f32.f32(
; CHECK:       k.loop:
; CHECK:       load{{.*}} <2 x i32> <i32 8, i32 2>
; CHECK:       call <128 x float> @llvm.tensor.smma.
; CHECK:       br i1
; CHECK:       load{{.*}} <2 x i32> <i32 8, i32 1>
; CHECK:       call <128 x float> @llvm.tensor.smma.
; CHECK-NOT:   llvm.tensor.smma
; CHECK:       ret void

; CHECK-LABEL: define internal void @tlx.matmul.6x64x4.f32.f32.f32(
; CHECK:       k.loop:
; CHECK:       call <384 x float> @llvm.tensor.smma.
; CHECK-NOT:   llvm.tensor.smma
; CHECK:       ret void

define void @written_out(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <128 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<128 x float> %m, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @long(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 8, i32 17>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 17, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <128 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<128 x float> %m, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @many_registers(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 6, i32 4>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 64>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <384 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<384 x float> %m, <2 x i32> <i32 6, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
