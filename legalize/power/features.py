"""Features of Power processors by LLVM's names: what /proc/cpuinfo says, and their detection when a program runs.

Linux, arch/powerpc/include/uapi/asm/cputable.h, Documentation/arch/powerpc/elf_hwcaps.rst; LLVM,
lib/Target/PowerPC/PPC.td.
"""

from __future__ import annotations

import re
from typing import Final

from tlx.target.detection import HWCAP, HWCAP2, FeatureBit, FeatureDetector

LINUX_NAMES: Final = {
    "power8vector": "arch207",
    "power8altivec": "arch207",
    "directmove": "arch207",
    "power9vector": "arch300",
    "power9altivec": "arch300",
    "isav30instructions": "arch300",
    "power10vector": "arch31",
    "isav31instructions": "arch31",
    "pairedvectormemops": "arch31",
    "pcrelativememops": "arch31",
    "prefixinstrs": "arch31",
}
"""Linux's names (glibc's, for bits of the auxiliary vector) where they differ from LLVM's; both without punctuation."""

HOST_FEATURES: Final = (
    "altivec",
    "vsx",
    "power8-vector",
    "direct-move",
    "power9-vector",
    "power10-vector",
    "paired-vector-memops",
    "mma",
)
"""Features of this machine that plain vectors use."""

_ARCH_2_07: Final[FeatureBit] = (HWCAP2, 31)
_ARCH_3_00: Final[FeatureBit] = (HWCAP2, 23)
_ARCH_3_1: Final[FeatureBit] = (HWCAP2, 18)

HWCAP_BITS: Final[dict[str, FeatureBit]] = {
    "altivec": (HWCAP, 28),
    "vsx": (HWCAP, 7),
    **dict.fromkeys(("power8-vector", "power8-altivec", "direct-move"), _ARCH_2_07),
    **dict.fromkeys(("power9-vector", "power9-altivec", "isa-v30-instructions"), _ARCH_3_00),
    **dict.fromkeys(
        ("power10-vector", "isa-v31-instructions", "paired-vector-memops", "pcrelative-memops", "prefix-instrs"),
        _ARCH_3_1,
    ),
    "mma": (HWCAP2, 17),
}

DETECT: Final = FeatureDetector(HWCAP_BITS)

_POWER7: Final = ("altivec", "vsx", "dfp", "arch_2_05", "arch_2_06")
_POWER8: Final = (*_POWER7, "arch_2_07")
_POWER9: Final = (*_POWER8, "arch_3_00")
_POWER10: Final = (*_POWER9, "arch_3_1", "mma")
_MODELS: Final = {7: _POWER7, 8: _POWER8, 9: _POWER9, 10: _POWER10, 11: _POWER10}
_CPU: Final = re.compile(r"(?m)^cpu\s*: POWER(\d+)")


def features_in_cpuinfo(text: str) -> frozenset[str]:
    """The features, by glibc's names, of the processor that /proc/cpuinfo names: Linux lists no features on Power."""
    models = [int(number) for number in _CPU.findall(text)]
    return frozenset(_MODELS.get(min(models), ())) if models else frozenset()
