"""`sme512`: the target `sme` for vectors of 512 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.legalize.arm.sme import TARGET as SME

TARGET: Final = replace(SME.with_vector_bits(512), name="sme512", title=f"{SME.title}, 512 bits", widths=())
