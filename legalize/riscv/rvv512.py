"""`rvv512`: the target `rvv` for registers of at least 512 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.legalize.riscv.rvv import TARGET as RVV

TARGET: Final = replace(RVV.with_vector_bits(512), name="rvv512", title=f"{RVV.title}, 512 bits", widths=())
