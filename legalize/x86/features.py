"""Features of x86-64 processors by LLVM's names: which processor has which, and how a program asks for them.

Intel Architecture Instruction Set Extensions Programming Reference, chapter 1 (support matrix, CPUID); Intel 64 and
IA-32 Architectures Software Developer's Manual, volume 1, chapter 13 (XCR0); LLVM, lib/TargetParser/X86TargetParser.cpp
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

XCR0_YMM: Final = 0b110
XCR0_ZMM: Final = 0b1110_0110
XCR0_TILES: Final = 0b11 << 17


@dataclass(frozen=True, slots=True)
class CpuidBit:
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


CPUID_BITS: Final[dict[str, CpuidBit]] = {
    "sse": CpuidBit(1, 0, "edx", 25, 0),
    "sse2": CpuidBit(1, 0, "edx", 26, 0),
    "sse3": CpuidBit(1, 0, "ecx", 0, 0),
    "ssse3": CpuidBit(1, 0, "ecx", 9, 0),
    "sse4.1": CpuidBit(1, 0, "ecx", 19, 0),
    "sse4.2": CpuidBit(1, 0, "ecx", 20, 0),
    "popcnt": CpuidBit(1, 0, "ecx", 23, 0),
    "avx": CpuidBit(1, 0, "ecx", 28, XCR0_YMM),
    "fma": CpuidBit(1, 0, "ecx", 12, XCR0_YMM),
    "f16c": CpuidBit(1, 0, "ecx", 29, XCR0_YMM),
    "bmi": CpuidBit(7, 0, "ebx", 3, 0),
    "bmi2": CpuidBit(7, 0, "ebx", 8, 0),
    "gfni": CpuidBit(7, 0, "ecx", 8, XCR0_YMM),
    "avx2": CpuidBit(7, 0, "ebx", 5, XCR0_YMM),
    "avx512f": CpuidBit(7, 0, "ebx", 16, XCR0_ZMM),
    "avx512cd": CpuidBit(7, 0, "ebx", 28, XCR0_ZMM),
    "avx512ifma": CpuidBit(7, 0, "ebx", 21, XCR0_ZMM),
    "avx512vbmi2": CpuidBit(7, 0, "ecx", 6, XCR0_ZMM),
    "avx512bitalg": CpuidBit(7, 0, "ecx", 12, XCR0_ZMM),
    "avx512vpopcntdq": CpuidBit(7, 0, "ecx", 14, XCR0_ZMM),
    "avx512dq": CpuidBit(7, 0, "ebx", 17, XCR0_ZMM),
    "avx512bw": CpuidBit(7, 0, "ebx", 30, XCR0_ZMM),
    "avx512vl": CpuidBit(7, 0, "ebx", 31, XCR0_ZMM),
    "avx512vnni": CpuidBit(7, 0, "ecx", 11, XCR0_ZMM),
    "avx512fp16": CpuidBit(7, 0, "edx", 23, XCR0_ZMM),
    "avx512bf16": CpuidBit(7, 1, "eax", 5, XCR0_ZMM),
    "avx512vbmi": CpuidBit(7, 0, "ecx", 1, XCR0_ZMM),
    "avxvnni": CpuidBit(7, 1, "eax", 4, XCR0_YMM),
    "avxvnniint8": CpuidBit(7, 1, "edx", 4, XCR0_YMM),
    "avxneconvert": CpuidBit(7, 1, "edx", 5, XCR0_YMM),
    "avxvnniint16": CpuidBit(7, 1, "edx", 10, XCR0_YMM),
    "amx-bf16": CpuidBit(7, 0, "edx", 22, XCR0_TILES),
    "amx-tile": CpuidBit(7, 0, "edx", 24, XCR0_TILES),
    "amx-int8": CpuidBit(7, 0, "edx", 25, XCR0_TILES),
    "amx-fp16": CpuidBit(7, 1, "eax", 21, XCR0_TILES),
}

LINUX_NAMES: Final = {"sse3": "pni", "sha": "shani", "lzcnt": "abm", "crc32": "sse42", "64bit": "lm"}
"""Where Linux's name of a feature differs from LLVM's in more than punctuation."""

TUNING_PREFIXES: Final = (
    "allow-light-",
    "branch",
    "false-deps-",
    "fast",
    "idiv",
    "macrofusion",
    "no-bypass-",
    "prefer-",
    "slow",
)
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

CPU_FEATURES: Final[dict[str, tuple[str, ...]]] = {
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
