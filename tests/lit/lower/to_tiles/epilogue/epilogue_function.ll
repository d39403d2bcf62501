; The loop over the rows of a tile in memory is a function of its own: LLVM would keep constants of a long epilogue in
; registers during the K loop, too.
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 --stop-after=to-tiles | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=amx --stop-after=to-tiles | FileCheck %s --check-prefix=MATRIX
; RUN: grep -v '^;' %s | tlx-lower - --target=avx2 --check | FileCheck %s --check-prefix=LOWERED

; CHECK: define internal void @tlx.matmul.32x32x64.bf16.bf16.f32.fused(
; CHECK: k.loop:
; CHECK: call void @tlx.matmul.32x32x64.bf16.bf16.f32.fused.epilogue(
; CHECK-NOT: er.loop:
; CHECK: define internal void @tlx.matmul.32x32x64.bf16.bf16.f32.fused.epilogue({{.*}}) nounwind noinline "tlx-stage"="tiles" "target-features"="+avx2,+fma,+f16c" {
; CHECK: er.loop:
; CHECK: call {{.*}} @llvm.exp

; A matrix unit is configured during the whole kernel, which calls no function.
; MATRIX-NOT: .epilogue(

; LOWERED: call void @tlx.matmul.32x32x64.bf16.bf16.f32.fused.epilogue(
; LOWERED-NOT: llvm.tensor
define void @gelu(ptr noalias %a, ptr noalias %b, ptr noalias %c) {
  %x = call token @llvm.tensor.load(ptr elementtype(bfloat) %a, <2 x i32> <i32 32, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %y = call token @llvm.tensor.load(ptr elementtype(bfloat) %b, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <1024 x float> @llvm.tensor.matmul(token %x, token %y)
  %square = fmul <1024 x float> %p, %p
  %minus = fneg <1024 x float> %square
  %power = call <1024 x float> @llvm.exp(<1024 x float> %minus)
  %one = fadd <1024 x float> %power, splat (float 1.0)
  %t = fdiv <1024 x float> %p, %one
  %u = call <1024 x float> @llvm.exp(<1024 x float> %t)
  %v = fadd <1024 x float> %u, splat (float 3.0)
  %w = fdiv <1024 x float> %power, %v
  store <1024 x float> %w, ptr %c
  ret void
}
