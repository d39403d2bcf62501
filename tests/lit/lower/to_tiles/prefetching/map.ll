; Exponentials of more data than L2 holds are prefetched a page ahead: each cache line takes so much computation
; that out-of-order execution does not reach the next loads. Smaller data is not prefetched.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx512 | FileCheck %s
;
; CHECK-LABEL: define internal void @tlx.map.1x4194304.f32(
; CHECK: getelementptr i8, ptr %{{.*}}, i64 4096
; CHECK-NEXT: call void @llvm.prefetch
; CHECK-LABEL: define internal void @tlx.map.1x16384.f32(
; CHECK-NOT: call void @llvm.prefetch

define void @large(ptr noalias %y, ptr %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 4194304>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <4194304 x float> @llvm.tensor.exp(token %a)
  %t = call token @llvm.tensor.typeinfo(<4194304 x float> %v, <1 x i32> <i32 4194304>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}

define void @small(ptr noalias %y, ptr %x) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <1 x i32> <i32 16384>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %v = call <16384 x float> @llvm.tensor.exp(token %a)
  %t = call token @llvm.tensor.typeinfo(<16384 x float> %v, <1 x i32> <i32 16384>, <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %y, token %t, <1 x i32> zeroinitializer)
  ret void
}
