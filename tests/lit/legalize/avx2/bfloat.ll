; bfloat is converted to float while it is packed; the inner loop has multiply-adds of floats.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --tile=2x8 | FileCheck %s --implicit-check-not=llvm.tensor.

; CHECK: shl <8 x i32> %{{.*}}, <{{(i32 16(, )?)+}}>
; CHECK: k.loop.1:
; CHECK: call <8 x float> @llvm.fma.v8f32(
; CHECK-NOT: shl <
; CHECK: ret void

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 32, i32 8>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <16 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<16 x float> %m, <2 x i32> <i32 2, i32 8>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
