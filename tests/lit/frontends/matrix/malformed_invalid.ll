; Malformed calls are reported by LLVM's verifier.
;
; RUN: not tlx-lower %s 2>&1 | FileCheck %s

; CHECK: malformed_invalid.ll: error: Result of a matrix operation does not fit in the returned vector!
define <6 x float> @f(<6 x float> %a) {
  %b = call <6 x float> @llvm.matrix.transpose.v6f32(<6 x float> %a, i32 2, i32 4)
  ret <6 x float> %b
}

declare <6 x float> @llvm.matrix.transpose.v6f32(<6 x float>, i32 immarg, i32 immarg)
