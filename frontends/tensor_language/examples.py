"""Programs in version 2 of the language, for tests and fuzzers to start from."""

from __future__ import annotations

from typing import Final

_FUSED: Final = """\
; D_g += alpha (A_g B^T) C
func @fused(%alpha: f32,
            %A: group<memref<f32x16x8>x?>,
            %B: memref<f32x8x8>,
            %C: memref<f32x8x16>,
            %D: memref<f32x16x16x?>) {
    %zero = constant 0.0 : f32
    %one = constant 1.0 : f32
    %g = group_id.x : index
    %a = load %A[%g] : memref<f32x16x8>
    %d = subview %D[0:16,0:16,%g] : memref<f32x16x16>
    %between = alloca : memref<f32x16x8,local>
    gemm.n.t %one, %a, %B, %zero, %between
    gemm %alpha, %between, %C, %one, %d
}
"""
_SCALE: Final = """\
func @scale(%alpha: f32, %A: memref<f32x?x?>) {
    %zero = constant 0.0 : f32
    axpby %alpha, %A, %zero, %A
}
"""
EXAMPLES: Final = (_FUSED, _SCALE)
