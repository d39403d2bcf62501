"""Rounding sums of tile products to bfloat: VCVTNE2PS2BF16 rounds two registers of floats to one.

It takes subnormal floats for zeros, which is why it rounds nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import BFLOAT, I16, VectorType
from tlx.lower.legalize.registers import Registers
from tlx.lower.legalize.shuffles import relaned

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.target import Target

_LANES: Final = 16
_ROUNDED: Final = VectorType(2 * _LANES, I16)


def can_round(target: Target, cols: int) -> bool:
    """Whether rows of so many floats are rounded by two registers at a time."""
    return "+avx512bf16" in target.features and cols % (2 * _LANES) == 0


def rounded_sums(b: Builder, sums: Registers) -> Registers:
    """A tile of floats, none of them subnormal, as bfloat."""
    sums = relaned(b, sums, _LANES)
    rows = tuple(
        tuple(
            # LLVM 14 to 16 know the result as i16; later ones upgrade it.
            b.call_named("llvm.x86.avx512bf16.cvtne2ps2bf16.512", _ROUNDED, [row[i + 1], row[i]], "rounded").value
            for i in range(0, len(row), 2)
        )
        for row in sums.regs
    )
    return Registers(BFLOAT, sums.rows, sums.cols, 2 * _LANES, rows)
