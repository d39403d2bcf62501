"""CPUID's bits of features, and the features of this machine that Linux omits.

Intel Architecture Instruction Set Extensions Programming Reference, chapter 1 (support matrix, CPUID); Intel 64 and
IA-32 Architectures Software Developer's Manual, volume 1, chapter 13 (XCR0)

Linux omits some features from /proc/cpuinfo (arch/x86/include/asm/cpufeatures.h: empty names). They use no registers
beyond those of listed features, so this process detects them by a few bytes of machine code that execute CPUID; if the
system forbids that, they count as missing.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from functools import cache
from typing import Final, Literal, NamedTuple

from tlx.target.system import call_machine_code

XCR0_YMM: Final = 0b110
XCR0_ZMM: Final = 0b1110_0110
XCR0_TILES: Final = 0b11 << 17


class CpuidBit(NamedTuple):
    """The CPUID bit of a feature, and the registers that the system must save for it.

    Attributes:
        leaf, subleaf: The inputs of CPUID.
        register: The register with the result.
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

REGISTERS: Final = ("eax", "ebx", "ecx", "edx")

_UNLISTED: Final = ("amx-fp16", "avxneconvert", "avxvnniint8")
_CODE: Final = bytes.fromhex(
    "53"  # push rbx
    "4989d0"  # mov r8, rdx
    "89f8"  # mov eax, edi
    "89f1"  # mov ecx, esi
    "0fa2"  # cpuid
    "418900"  # mov [r8], eax
    "41895804"  # mov [r8 + 4], ebx
    "41894808"  # mov [r8 + 8], ecx
    "4189500c"  # mov [r8 + 12], edx
    "5b"  # pop rbx
    "c3"  # ret
)


@cache
def detect_features() -> frozenset[str]:
    """The features that Linux does not list, by LLVM's names."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return frozenset()

    def cpuid(leaf: int, subleaf: int) -> list[int]:
        words = (ctypes.c_uint32 * len(REGISTERS))()
        call_machine_code(_CODE, leaf, subleaf, ctypes.addressof(words))
        return list(words)

    try:
        return frozenset(name for name in _UNLISTED if _has_bit(cpuid, CPUID_BITS[name]))
    except OSError:
        return frozenset()


def _has_bit(cpuid: Callable[[int, int], list[int]], bit: CpuidBit) -> bool:
    if cpuid(0, 0)[0] < bit.leaf or cpuid(bit.leaf, 0)[0] < bit.subleaf:
        return False
    return bool(cpuid(bit.leaf, bit.subleaf)[REGISTERS.index(bit.register)] >> bit.bit & 1)
