"""`rvv256`: the target `rvv` for registers of at least 256 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.legalize.riscv.rvv import TARGET as RVV

TARGET: Final = replace(RVV.with_vector_bits(256), name="rvv256", title=f"{RVV.title}, 256 bits", widths=())
