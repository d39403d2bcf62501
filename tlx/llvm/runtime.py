"""Functions that LLVM's code calls and that not every machine's libraries have.

Without AVX512-BF16 (or the like), LLVM converts to bfloat by calls of `__truncsfbf2` and `__truncdfbf2`, which libgcc
has since version 13 only. These are the two, in integer arithmetic: round to nearest, ties to even; a NaN stays one.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_TEXT: Final = """
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %even = and i32 %high, 1
  %bias = add i32 %even, 32767
  %rounded = add i32 %bits, %bias
  %quiet = or i32 %bits, 4194304
  %nan = fcmp uno float %x, 0.0
  %chosen = select i1 %nan, i32 %quiet, i32 %rounded
  %shifted = lshr i32 %chosen, 16
  %short = trunc i32 %shifted to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

; Rounded to odd on the way, so that rounding twice is rounding once.
define bfloat @__truncdfbf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %size = call double @llvm.fabs.f64(double %x)
  %reached = call double @llvm.fabs.f64(double %back)
  %over = fcmp ogt double %reached, %size
  %bits = bitcast float %near to i32
  %less = zext i1 %over to i32
  %toward = sub i32 %bits, %less
  %odd = zext i1 %inexact to i32
  %sticky = or i32 %toward, %odd
  %single = bitcast i32 %sticky to float
  %result = call bfloat @__truncsfbf2(float %single)
  ret bfloat %result
}

declare double @llvm.fabs.f64(double)
"""
NAMES: Final = ("__truncsfbf2", "__truncdfbf2")


@cache
def image() -> bytes:
    """The object file with these functions, for this machine."""
    from tlx.codegen import emit

    return emit(_TEXT, "obj", 2)
