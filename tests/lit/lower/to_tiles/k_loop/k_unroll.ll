; A register tile that leaves registers free is unrolled by two along K; the last position is multiplied separately.
; On AVX2, any tile is unrolled by four.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 --stop-after=to-tiles | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2 --stop-after=to-tiles | FileCheck %s --check-prefix=AVX2

; CHECK-LABEL: define internal void @tlx.matmul.32x32x33.f32.f32.f32(
; CHECK:       k.loop:
; CHECK:       %[[A:.*]] = call token @llvm.tensor.load{{.*}} <2 x i32> <i32 11, i32 2>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 33>)
; CHECK:       %[[B:.*]] = call token @llvm.tensor.load{{.*}} <2 x i32> <i32 2, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; CHECK:       call <352 x float> @llvm.tensor.smma{{.*}}token %[[A]], token %[[B]])
; CHECK:       icmp slt i64 %k.next, 32
; CHECK:       call token @llvm.tensor.load{{.*}} <2 x i32> <i32 11, i32 1>
; CHECK:       call <352 x float> @llvm.tensor.smma

; AVX2-LABEL: define internal void @tlx.matmul.32x32x33.f32.f32.f32(
; AVX2:       k.loop:
; AVX2:       %[[A:.*]] = call token @llvm.tensor.load{{.*}} <2 x i32> <i32 {{[0-9]+}}, i32 4>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 33>)
; AVX2:       %[[B:.*]] = call token @llvm.tensor.load{{.*}} <2 x i32> <i32 4, i32 {{[0-9]+}}>, <2 x i32> <i32 0, i32 1>, <2 x i32> <i32 0, i32 0>, <2 x i32> <i32 0, i32 32>)
; AVX2:       call {{.*}} @llvm.tensor.smma{{.*}}token %[[A]], token %[[B]])
; AVX2:       %k.next = add i64 %k, 4

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %lhs = call token @llvm.tensor.load(ptr elementtype(float) %a, <2 x i32> <i32 32, i32 33>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %rhs = call token @llvm.tensor.load(ptr elementtype(float) %b, <2 x i32> <i32 33, i32 32>, <2 x i32> <i32 0, i32 1>,
      <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %m = call <1024 x float> @llvm.tensor.matmul(token %lhs, token %rhs)
  %t = call token @llvm.tensor.typeinfo(<1024 x float> %m, <2 x i32> <i32 32, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <2 x i32> zeroinitializer)
  ret void
}
