"""Features of the processor at hand that Linux does not list in /proc/cpuinfo, as it has no use for them itself.

They need no registers but those that come with listed features (Linux, arch/x86/include/asm/cpufeatures.h: names that
are empty). CPUID is asked by a few bytes of machine code; nothing is found out where the system forbids that.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable
from functools import cache
from typing import Final

from tlx.legalize._x86 import BITS, Bit

_UNLISTED: Final = ("amx-fp16", "avxneconvert", "avxvnniint8")
_REGISTERS: Final = ("eax", "ebx", "ecx", "edx")
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
def unlisted() -> frozenset[str]:
    """LLVM's names of the features."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return frozenset()
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return frozenset()
    page.write(_CODE)
    code = (ctypes.c_char * len(_CODE)).from_buffer(page)
    run = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(ctypes.addressof(code))

    def cpuid(leaf: int, subleaf: int) -> list[int]:
        answer = (ctypes.c_uint32 * len(_REGISTERS))()
        run(leaf, subleaf, ctypes.addressof(answer))
        return list(answer)

    return frozenset(name for name in _UNLISTED if _has(cpuid, BITS[name]))


def _has(cpuid: Callable[[int, int], list[int]], bit: Bit) -> bool:
    if cpuid(0, 0)[0] < bit.leaf or cpuid(bit.leaf, 0)[0] < bit.subleaf:
        return False
    return bool(cpuid(bit.leaf, bit.subleaf)[_REGISTERS.index(bit.register)] >> bit.bit & 1)
