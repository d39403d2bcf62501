"""`sme256`: the target `sme` for vectors of 256 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.legalize.arm.sme import TARGET as SME

TARGET: Final = replace(SME.with_vector_bits(256), name="sme256", title=f"{SME.title}, 256 bits", widths=())
