; Loops are not outlined if something in them belongs to the user's function: here a call to another function.
; RUN: tlx-lower %s --target=avx512 -o - | FileCheck %s

; CHECK-LABEL: define void @noted(
; CHECK:       loop:
; CHECK:         call void @tlx.matmul.3x5x4.f32.f32.f32(
; CHECK:         call void @note(
; CHECK:       define internal void @tlx.matmul.3x5x4.f32.f32.f32(
declare void @note(i64)

define void @noted(ptr %a, ptr %b, ptr noalias %c) {
  br label %loop

loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 3, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 4, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <15 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<15 x float> %m, <2 x i32> <i32 3, i32 5>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  call void @note(i64 %i)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, 9
  br i1 %again, label %loop, label %end

end:
  ret void
}
