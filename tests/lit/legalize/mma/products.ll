; Products on Power10's accumulators: nothing is spilled in the main loop of a register tile of 2x4 accumulators, whose
; first step is peeled. Unsigned by signed bytes are multiplied in the other order: a register of B, then one of A.
; RUN: grep -v '^;' %s | tlx-lower - --target=mma --mtriple=powerpc64le-linux-gnu -o - | FileCheck %s
; RUN: grep -v '^;' %s | tlx-lower - --target=mma --mtriple=powerpc64le-linux-gnu --emit=asm -O2 -o - | FileCheck %s --check-prefix=ASM

; CHECK-LABEL: define internal void @tlx.matmul.16x32x64.f32.f32.f32
; CHECK: phi <512 x i1>
; CHECK: call <512 x i1> @llvm.ppc.mma.xvf32gerpp(<512 x i1> %{{.*}}, <16 x i8> %{{.*}}, <16 x i8> %{{.*}})
; CHECK: call { <16 x i8>, <16 x i8>, <16 x i8>, <16 x i8> } @llvm.ppc.mma.disassemble.acc(
; CHECK-LABEL: define internal void @tlx.matmul.16x32x64.i8.i8.i32.us(
; CHECK: call <512 x i1> @llvm.ppc.mma.assemble.acc(
; CHECK: call <512 x i1> @llvm.ppc.mma.xvi8ger4pp(
; CHECK-LABEL: define internal void @tlx.matmul.16x16x32.f64.f64.f64(
; CHECK: call <256 x i1> @llvm.ppc.vsx.assemble.pair(
; CHECK: call <512 x i1> @llvm.ppc.mma.xvf64gerpp(<512 x i1> %{{.*}}, <256 x i1> %{{.*}}, <16 x i8> %{{.*}})

; ASM-LABEL: {{^}}tlx.matmul.16x32x64.f32.f32.f32{{.*}}:
; ASM: bdnz
; ASM: xvf32gerpp
; ASM-NOT: stxv
; ASM: bdnz
; ASM: stxv

define void @floats(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(float) %x, <2 x i32> <i32 16, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(float) %y, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <512 x float> @llvm.tensor.matmul(token %a, token %b)
  store <512 x float> %p, ptr %c
  ret void
}

define void @bytes(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(i8) %x, <2 x i32> <i32 16, i32 64>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(i8) %y, <2 x i32> <i32 64, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %s = call token @llvm.tensor.load(ptr elementtype(i32) %c, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <512 x i32> @llvm.tensor.usmma(token %s, token %a, token %b)
  store <512 x i32> %p, ptr %c
  ret void
}

define void @doubles(ptr noalias %x, ptr noalias %y, ptr noalias %c) {
  %a = call token @llvm.tensor.load(ptr elementtype(double) %x, <2 x i32> <i32 16, i32 32>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %b = call token @llvm.tensor.load(ptr elementtype(double) %y, <2 x i32> <i32 32, i32 16>, <2 x i32> <i32 0, i32 1>, <2 x i32> zeroinitializer, <2 x i32> zeroinitializer)
  %p = call <256 x double> @llvm.tensor.matmul(token %a, token %b)
  store <256 x double> %p, ptr %c
  ret void
}
