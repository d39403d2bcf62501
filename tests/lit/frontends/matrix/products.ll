; A matrix is column-major, the transpose of a row-major tensor: (A B)^T = B^T A^T.
;
; RUN: grep -v '^;' %s | tlx raise | FileCheck %s --implicit-check-not=llvm.matrix
; RUN: grep -v '^;' %s | tlx raise | tlx verify | count 0
; RUN: grep -v '^;' %s | tlx-lower --target=generic | FileCheck %s --check-prefix=LOWERED

; CHECK-LABEL: define void @multiply(
; LOWERED-LABEL: define void @multiply(
; LOWERED: call void @tlx.matmul.4x2x3.f32.f32.f32(ptr %r, ptr %q, ptr %p)
define void @multiply(ptr noalias %p, ptr noalias %q, ptr noalias %r) {
  %a = load <6 x float>, ptr %p, align 4
  %b = load <12 x float>, ptr %q, align 4
; CHECK: %[[B:.*]] = call token @llvm.tensor.typeinfo.v12f32.v2i32(<12 x float> %b, <2 x i32> <i32 4, i32 3>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %[[A:.*]] = call token @llvm.tensor.typeinfo.v6f32.v2i32(<6 x float> %a, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %c = call <8 x float> @llvm.tensor.matmul.v8f32(token %[[B]], token %[[A]])
; CHECK-NEXT: store <8 x float> %c
  %c = tail call contract <8 x float> @llvm.matrix.multiply.v8f32.v6f32.v12f32(<6 x float> %a, <12 x float> %b, i32 2, i32 3, i32 4)
  store <8 x float> %c, ptr %r, align 4
  ret void
}

; CHECK-LABEL: define <6 x i16> @transpose(
define <6 x i16> @transpose(<6 x i16> %0) {
; CHECK: %[[T:.*]] = call token @llvm.tensor.typeinfo.v6i16.v2i32(<6 x i16> %0, <2 x i32> <i32 3, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>)
; CHECK-NEXT: %2 = call <6 x i16> @llvm.tensor.transpose.v6i16.v2i32(token %[[T]], <2 x i32> <i32 1, i32 0>)
; CHECK-NEXT: ret <6 x i16> %2
  %2 = call <6 x i16> @llvm.matrix.transpose.v6i16(<6 x i16> %0, i32 2, i32 3)
  ret <6 x i16> %2
}

declare <8 x float> @llvm.matrix.multiply.v8f32.v6f32.v12f32(<6 x float>, <12 x float>, i32 immarg, i32 immarg, i32 immarg)
declare <6 x i16> @llvm.matrix.transpose.v6i16(<6 x i16>, i32 immarg, i32 immarg)
