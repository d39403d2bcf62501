"""The lengths of this machine's scalable vectors, which Linux does not list."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Final

LENGTH_REQUESTS: Final = {"sve": 51, "sme": 64}
"""Requests of `prctl` for bytes of vectors, of SVE and of streaming mode; Linux, include/uapi/linux/prctl.h."""
LENGTH_MASK: Final = 0xFFFF


@cache
def host_vector_length(extension: str) -> frozenset[str]:
    """The length of this machine's vectors of an extension, as a feature: `sve256`; empty if it has none."""
    if platform.system() != "Linux" or platform.machine() != "aarch64":
        return frozenset()
    answer = ctypes.CDLL(None).prctl(LENGTH_REQUESTS[extension], 0, 0, 0, 0)
    return frozenset((f"{extension}{8 * (answer & LENGTH_MASK)}",)) if answer > 0 else frozenset()


def detect_features() -> frozenset[str]:
    """The lengths of vectors of all extensions, as features."""
    return frozenset[str]().union(*map(host_vector_length, LENGTH_REQUESTS))
