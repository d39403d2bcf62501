"""`sve512`: the target `sve` for vectors of 512 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.legalize.arm.sve import TARGET as SVE

TARGET: Final = replace(SVE.with_vector_bits(512), name="sve512", title=f"{SVE.title}, 512 bits", widths=())
