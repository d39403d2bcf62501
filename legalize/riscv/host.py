"""The length of this machine's vectors, which Linux does not list.

It is the register VLENB, which can be read only where there are vectors and the process may use them. The RISC-V
Instruction Set Manual, volume I, chapter "V"; Linux, Documentation/arch/riscv/vector.rst.
"""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Final

from tlx.target.detection import HWCAP
from tlx.target.system import call_machine_code

READ_LENGTH: Final = bytes.fromhex(
    "732520c2"  # csrr a0, vlenb
    "67800000"  # ret
)
"""Code of a function that returns VLENB."""
LENGTHS: Final = tuple(128 << n for n in range(10))
"""Lengths of vectors, in bits, that Zvl extensions name."""
_V: Final = 1 << ord("v") - ord("a")
_GET_VECTOR_STATE: Final = 70
_STATE_MASK: Final = 0b11
_STATE_OFF: Final = 1
"""A request of `prctl`, and its answer where the process may not use vectors."""


@cache
def detect_features() -> frozenset[str]:
    """The least lengths that this machine's vectors have, as features: `zvl128b`, `zvl256b`."""
    if platform.system() != "Linux" or platform.machine() != "riscv64":
        return frozenset()
    library = ctypes.CDLL(None)
    library.getauxval.restype = ctypes.c_ulong
    state = library.prctl(_GET_VECTOR_STATE, 0, 0, 0, 0)  # -1 on systems without the request
    if not library.getauxval(HWCAP) & _V or (state >= 0 and state & _STATE_MASK == _STATE_OFF):
        return frozenset()
    try:
        length = 8 * call_machine_code(READ_LENGTH)
    except OSError:
        return frozenset()
    return frozenset(f"zvl{bits}b" for bits in LENGTHS if bits <= length)
