; A loop around kernels has versions itself: one is selected once, with its kernels inlined. No kernel keeps a dispatcher.
;
; RUN: grep -v '^;' %s | tlx-lower - -o - --target=avx2,avx512 | FileCheck %s --implicit-check-not=@tlx.matmul
;
; CHECK: define void @f(
; CHECK: call void @tlx.nest.f(
; CHECK: define internal void @tlx.nest.f.avx2({{.*}}"target-features"="+avx2,+fma,+f16c"
; CHECK: call <8 x float> @llvm.fma.v8f32
; CHECK: define internal void @tlx.nest.f.avx512({{.*}}"target-features"="+avx512f,
; CHECK: call <16 x float> @llvm.fma.v16f32
; CHECK: define internal void @tlx.nest.f(ptr %a, ptr %b, ptr %c) nounwind {
; CHECK: switch i32 %level, label %version [ i32 3, label %version.1 i32 4, label %version.1 i32 5, label %version.1 ]
; CHECK: tail call void @tlx.nest.f.avx2(ptr %a, ptr %b, ptr %c)
; CHECK: tail call void @tlx.nest.f.avx512(ptr %a, ptr %b, ptr %c)

define void @f(ptr noalias %c, ptr %a, ptr %b) {
  %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <3 x i32> <i32 100, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(float) %b, <3 x i32> <i32 100, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer, <3 x i32> zeroinitializer)
  %m = call <25600 x float> @llvm.tensor.matmul(token %x, token %y)
  %t = call token @llvm.tensor.typeinfo(<25600 x float> %m, <3 x i32> <i32 100, i32 16, i32 16>, <3 x i32> <i32 0, i32 1, i32 2>, <3 x i32> zeroinitializer)
  call void @llvm.tensor.store(ptr %c, token %t, <3 x i32> zeroinitializer)
  ret void
}
