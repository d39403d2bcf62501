"""`sve256`: the target `sve` for vectors of 256 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.legalize.arm.sve import TARGET as SVE

TARGET: Final = replace(SVE.with_vector_bits(256), name="sve256", title=f"{SVE.title}, 256 bits", widths=())
