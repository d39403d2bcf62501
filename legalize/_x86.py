"""Features of x86-64 processors by LLVM's names: which processor has which, and how a program asks for them.

Intel Architecture Instruction Set Extensions Programming Reference, chapter 1 (support matrix, CPUID); Intel 64 and
IA-32 Architectures Software Developer's Manual, volume 1, chapter 13 (XCR0); LLVM, lib/TargetParser/X86TargetParser.cpp
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

YMM: Final = 0b110
ZMM: Final = 0b1110_0110
TILES: Final = 0b11 << 17


@dataclass(frozen=True, slots=True)
class Bit:
    """Where CPUID tells of a feature, and the registers that the system must save for it.

    Attributes:
        leaf, subleaf: What CPUID is asked.
        register: Where the answer is.
        bit: Number of the bit.
        state: Bits of XCR0 that must be set.
    """

    leaf: int
    subleaf: int
    register: Literal["eax", "ebx", "ecx", "edx"]
    bit: int
    state: int


BITS: Final[dict[str, Bit]] = {
    "sse": Bit(1, 0, "edx", 25, 0),
    "sse2": Bit(1, 0, "edx", 26, 0),
    "sse3": Bit(1, 0, "ecx", 0, 0),
    "ssse3": Bit(1, 0, "ecx", 9, 0),
    "sse4.1": Bit(1, 0, "ecx", 19, 0),
    "sse4.2": Bit(1, 0, "ecx", 20, 0),
    "popcnt": Bit(1, 0, "ecx", 23, 0),
    "avx": Bit(1, 0, "ecx", 28, YMM),
    "fma": Bit(1, 0, "ecx", 12, YMM),
    "f16c": Bit(1, 0, "ecx", 29, YMM),
    "bmi": Bit(7, 0, "ebx", 3, 0),
    "bmi2": Bit(7, 0, "ebx", 8, 0),
    "gfni": Bit(7, 0, "ecx", 8, YMM),
    "avx2": Bit(7, 0, "ebx", 5, YMM),
    "avx512f": Bit(7, 0, "ebx", 16, ZMM),
    "avx512cd": Bit(7, 0, "ebx", 28, ZMM),
    "avx512ifma": Bit(7, 0, "ebx", 21, ZMM),
    "avx512vbmi2": Bit(7, 0, "ecx", 6, ZMM),
    "avx512bitalg": Bit(7, 0, "ecx", 12, ZMM),
    "avx512vpopcntdq": Bit(7, 0, "ecx", 14, ZMM),
    "avx512dq": Bit(7, 0, "ebx", 17, ZMM),
    "avx512bw": Bit(7, 0, "ebx", 30, ZMM),
    "avx512vl": Bit(7, 0, "ebx", 31, ZMM),
    "avx512vnni": Bit(7, 0, "ecx", 11, ZMM),
    "avx512fp16": Bit(7, 0, "edx", 23, ZMM),
    "avx512bf16": Bit(7, 1, "eax", 5, ZMM),
    "avx512vbmi": Bit(7, 0, "ecx", 1, ZMM),
    "avxvnni": Bit(7, 1, "eax", 4, YMM),
    "avxvnniint8": Bit(7, 1, "edx", 4, YMM),
    "avxneconvert": Bit(7, 1, "edx", 5, YMM),
    "avxvnniint16": Bit(7, 1, "edx", 10, YMM),
    "amx-bf16": Bit(7, 0, "edx", 22, TILES),
    "amx-tile": Bit(7, 0, "edx", 24, TILES),
    "amx-int8": Bit(7, 0, "edx", 25, TILES),
    "amx-fp16": Bit(7, 1, "eax", 21, TILES),
}

PACES: Final = ("allow-light-", "branch", "false-deps-", "fast", "idiv", "macrofusion", "no-bypass-", "prefer-", "slow")
"""How LLVM's names begin of features that say how fast something is: every processor runs their code."""

_AVX2: Final = ("avx2", "fma", "f16c")
_AVX512: Final = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")
_VNNI: Final = (*_AVX512, "avx512vnni")
_BF16: Final = (*_VNNI, "avx512bf16")
_ICE: Final = (*_VNNI, "avx512vbmi")
_ZEN4: Final = (*_BF16, "avx512vbmi")
_SAPPHIRE: Final = (*_ZEN4, "avxvnni", "amx-tile", "amx-bf16", "amx-int8")
_GRANITE: Final = (*_SAPPHIRE, "amx-fp16")
_HYBRID: Final = (*_AVX2, "avxvnni")
_SIERRA: Final = (*_HYBRID, "avxvnniint8", "avxneconvert")

CPUS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("haswell", "broadwell", "skylake", "znver1", "znver2", "znver3", "x86-64-v3"), _AVX2),
    **dict.fromkeys(("knl", "knm"), (*_AVX2, "avx512f")),
    **dict.fromkeys(("skylake-avx512", "skx", "x86-64-v4"), _AVX512),
    "cannonlake": (*_AVX512, "avx512vbmi"),
    "cascadelake": _VNNI,
    **dict.fromkeys(("icelake-client", "icelake-server", "tigerlake", "rocketlake"), _ICE),
    "cooperlake": _BF16,
    "znver4": _ZEN4,
    **dict.fromkeys(("sapphirerapids", "emeraldrapids"), _SAPPHIRE),
    **dict.fromkeys(("graniterapids", "graniterapids-d"), _GRANITE),
    "znver5": (*_ZEN4, "avxvnni"),
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "gracemont"), _HYBRID),
    **dict.fromkeys(("sierraforest", "grandridge", "arrowlake", "arrowlake-s", "lunarlake"), _SIERRA),
    **dict.fromkeys(("pantherlake", "clearwaterforest"), _SIERRA),
}
