; Results larger than the caches: in the assembly, the loop has non-temporal stores of four whole registers a step, and nothing
; is on the stack; a fence follows.
;
; REQUIRES: clang-19, host-x86_64
; RUN: tlx-lower %s -o %t.ll --target=avx512
; RUN: clang-19 -O2 -fPIC -Wno-override-module -S %t.ll -o %t.s
; RUN: FileCheck %s --input-file=%t.s --check-prefix=ADD --implicit-check-not="(%rsp" --implicit-check-not=callq
;
; ADD-LABEL: tlx.map.1x16777216.f32:
; ADD: vmovntps %zmm
; ADD-NEXT: vmovntps %zmm
; ADD-NEXT: vmovntps %zmm
; ADD-NEXT: vmovntps %zmm
; ADD: jne
; ADD: mfence

define void @add(ptr noalias %y, ptr noalias %a, ptr noalias %b) {
  %v = load <16777216 x float>, ptr %a
  %w = load <16777216 x float>, ptr %b
  %r = fadd <16777216 x float> %v, %w
  store <16777216 x float> %r, ptr %y
  ret void
}
