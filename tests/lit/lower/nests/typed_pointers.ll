; Outlined loops in files with typed pointers: captured values keep their types.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 -o - | FileCheck %s

; CHECK-LABEL: define void @batch(
; CHECK:         call void @tlx.nest.batch(float* %a, float* %b, float* %c)
; CHECK:       define internal void @tlx.nest.batch(float* %a, float* %b, float* %c)
; CHECK:       k.loop:
; CHECK-NEXT:    %k = phi i64 [ 0, %batch.loop ], [ %k.next, %k.loop ]
; CHECK-NOT:   define internal void @tlx.matmul


define void @batch(float* %a, float* %b, float* noalias %c) {
  %x = call token @llvm.tensor.load(float* %a, <3 x i32> <i32 20, i32 3, i32 20>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(float* %b, <3 x i32> <i32 20, i32 20, i32 5>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <300 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<300 x float> %m, <3 x i32> <i32 20, i32 3, i32 5>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(float* %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
