"""Features of RISC-V processors by LLVM's names, and their detection when a program runs.

The single-letter extensions are bits of AT_HWCAP. The others are bits of `riscv_hwprobe`, a system call that Linux has
since version 6.4: without it, they count as missing. The length of vectors is `llvm.vscale`, in a function that runs
only where there are vectors. Linux, Documentation/arch/riscv/hwprobe.rst, arch/riscv/include/uapi/asm/hwprobe.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.module import UnparsedText
from tlx.ir.types import I64, ArrayType, FunctionType
from tlx.ir.values import Global, Value, const_int
from tlx.target.detection import HWCAP, FeatureBit, FeatureDetector, auxiliary_word

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.target.target import Target


HOST_FEATURES: Final = (
    "m",
    "a",
    "f",
    "d",
    "c",
    "v",
    "zfh",
    "zfhmin",
    "zvfh",
    "zvfhmin",
    "zvfbfmin",
    "zba",
    "zbb",
    "zbs",
)
"""Features of this machine that plain vectors use."""

_PROBE: Final = 258
"""The number of the system call, here also of the word that it returns."""
_IMA_EXT_0: Final = 4
_LETTERS: Final = "imafdcv"
_LENGTHS: Final = ("zvl64b", "zvl128b", "zvl256b", "zvl512b", "zvl1024b")
_GRANULE_BYTES: Final = 8

FEATURE_BITS: Final[dict[str, FeatureBit]] = {
    **{letter: (HWCAP, ord(letter) - ord("a")) for letter in _LETTERS},
    "zba": (_PROBE, 3),
    "zbb": (_PROBE, 4),
    "zbs": (_PROBE, 5),
    "zfh": (_PROBE, 27),
    "zfhmin": (_PROBE, 28),
    "zvfh": (_PROBE, 30),
    "zvfhmin": (_PROBE, 31),
    "zfa": (_PROBE, 32),
}


def _read_word(b: Builder, word: int) -> Value:
    """The word of AT_HWCAP, or the value that the system call writes for its key; 0 where there is no such call."""
    if word != _PROBE:
        return auxiliary_word(b, word)
    key = b.alloca(ArrayType(2, I64), "pair", 8)
    value = b.gep(I64, key, 1)
    b.store(const_int(I64, _IMA_EXT_0), key, 8)
    b.store(const_int(I64, 0), value, 8)
    zero, one = const_int(I64, 0), const_int(I64, 1)
    b.call_named("syscall", I64, [const_int(I64, _PROBE), key, one, zero, zero, zero], "answer", "nounwind")
    return b.load(I64, value, 8)


def _has_length(version: Target) -> bool:
    return "+v" in version.features


def _fits_length(b: Builder, version: Target) -> Value:
    """Whether the machine's vectors are at least as long as the version's."""
    name = b.module.global_names.fresh("tlx.cpu.vscale")
    text = f"""

define internal i64 @{name}() noinline nounwind "target-features"="+v" {{
  %granules = call i64 @llvm.vscale.i64()
  ret i64 %granules
}}"""
    if "@llvm.vscale.i64()" not in b.module.raw_text():
        text += "\n\ndeclare i64 @llvm.vscale.i64()"
    b.module.append(UnparsedText(text))
    type_ = FunctionType(I64, ())
    granules = b.call(Global(b.pointer(type_), name), type_, [], "granules").value
    return b.icmp("uge", granules, version.vector_bytes // _GRANULE_BYTES)


DETECT: Final = FeatureDetector(
    FEATURE_BITS, _read_word, frozenset(_LENGTHS), has_length=_has_length, fits_length=_fits_length
)
