; Results larger than the caches: in the assembly the loop stores past them, four whole registers a step, and nothing is
; on the stack; a fence comes behind. Exponentials are 14 instructions a register, without calls, and four registers take
; turns, so that none waits.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: FileCheck %s --input-file=%t.s --check-prefix=ADD --implicit-check-not="(%rsp" --implicit-check-not=callq
; RUN: FileCheck %s --input-file=%t.s --check-prefix=EXP
;
; ADD-LABEL: tlx.map.1x16777216.f32:
; ADD: vmovntps %zmm
; ADD-NEXT: vmovntps %zmm
; ADD-NEXT: vmovntps %zmm
; ADD-NEXT: vmovntps %zmm
; ADD: jne
; ADD: mfence
; EXP-LABEL: tlx.map.1x4096.f32:
; EXP-COUNT-4: vmaxps
; EXP-NEXT: vminps
; EXP-NEXT: vminps
; EXP-NEXT: vminps
; EXP-NEXT: vminps
; EXP-COUNT-32: vfm
; EXP-COUNT-4: vscalefps
; EXP-COUNT-4: vmovups %zmm
; EXP: jne

define void @add(ptr noalias %y, ptr noalias %a, ptr noalias %b) {
  %v = load <16777216 x float>, ptr %a
  %w = load <16777216 x float>, ptr %b
  %r = fadd <16777216 x float> %v, %w
  store <16777216 x float> %r, ptr %y
  ret void
}

define void @exponentials(ptr noalias %y, ptr noalias %a) {
  %v = call token @llvm.tensor.load(ptr elementtype(float) %a, <1 x i32> <i32 4096>, <1 x i32> zeroinitializer,
      <1 x i32> zeroinitializer, <1 x i32> zeroinitializer)
  %r = call <4096 x float> @llvm.tensor.exp(token %v)
  store <4096 x float> %r, ptr %y
  ret void
}
