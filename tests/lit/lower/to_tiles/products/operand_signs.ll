; Narrow integers are extended by their own signedness.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=generic --tile=2x4 --stop-after=to-tiles | FileCheck %s

; CHECK-LABEL: define internal void @tlx.matmul.8x16x16.i16.i16.i32.us(ptr %c, ptr %a, ptr %b, ptr %acc) nounwind noinline "tlx-stage"="tiles" {
; CHECK: sext <{{[0-9]+}} x i16> %b.rows
; CHECK: zext <{{[0-9]+}} x i16> %a.rows
; CHECK-LABEL: define internal void @tlx.matmul.8x16x16.i16.i16.i32.su(ptr %c, ptr %a, ptr %b, ptr %acc) nounwind noinline "tlx-stage"="tiles" {
; CHECK: zext <{{[0-9]+}} x i16> %b.rows
; CHECK: sext <{{[0-9]+}} x i16> %a.rows

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i16) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <128 x i32> @llvm.tensor.usmma(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<128 x i32> %m, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}

define void @g(ptr noalias %c, ptr %a, ptr %b) {
  %acc = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %lhs = call token @llvm.tensor.load(ptr elementtype(i16) %a, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(i16) %b, <2 x i32> <i32 16, i32 16>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <128 x i32> @llvm.tensor.summa(token %acc, token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<128 x i32> %m, <2 x i32> <i32 8, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
