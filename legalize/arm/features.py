"""Features of AArch64 processors by LLVM's names: Linux's names, and their detection when a program runs.

Linux, Documentation/arch/arm64/elf_hwcaps.rst, arch/arm64/include/uapi/asm/hwcap.h, Documentation/arch/arm64/sve.rst;
LLVM, lib/TargetParser/AArch64TargetParser.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import I32, I64
from tlx.ir.values import Value, const_int
from tlx.legalize.arm.host import LENGTH_MASK, LENGTH_REQUESTS
from tlx.target.detection import HWCAP, HWCAP2, FeatureBit, FeatureDetector

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.target.target import Target


LINUX_NAMES: Final = {
    "neon": "asimd",
    "fparmv8": "fp",
    "fullfp16": "asimdhp",
    "fp16fml": "asimdfhm",
    "dotprod": "asimddp",
    "rdm": "asimdrdm",
    "complxnum": "fcma",
    "jsconv": "jscvt",
    "rcpc": "lrcpc",
    "lse": "atomics",
    "crc": "crc32",
    "fptoint": "frint",
    "altnzcv": "flagm2",
    "rand": "rng",
    "pauth": "paca",
    "ccpp": "dcpop",
    "ccdp": "dcpodp",
    "sve2aes": "sveaes",
    "sve2sha3": "svesha3",
    "sve2sm4": "svesm4",
    "sve2bitperm": "svebitperm",
    "f32mm": "svef32mm",
    "f64mm": "svef64mm",
    "smef64f64": "smef64f64",
    "smei16i64": "smei16i64",
    "smef16f16": "smef16f16",
    "vfp2": "vfp",
    "vfp3": "vfpv3",
    "vfp4": "vfpv4",
    "hwdiv": "idivt",
    "hwdivarm": "idiva",
}
"""Where Linux's name of a feature differs from LLVM's in more than punctuation; both without."""

HOST_FEATURES: Final = ("neon", "fp-armv8", "fullfp16", "dotprod", "i8mm", "bf16", "sve", "sve2")
"""Features of this machine that plain vectors use."""

HWCAP_BITS: Final[dict[str, FeatureBit]] = {
    "fp-armv8": (HWCAP, 0),
    "neon": (HWCAP, 1),
    "crc": (HWCAP, 7),
    "lse": (HWCAP, 8),
    "fullfp16": (HWCAP, 10),
    "rdm": (HWCAP, 12),
    "jsconv": (HWCAP, 13),
    "complxnum": (HWCAP, 14),
    "rcpc": (HWCAP, 15),
    "dotprod": (HWCAP, 20),
    "sve": (HWCAP, 22),
    "fp16fml": (HWCAP, 23),
    "sve2": (HWCAP2, 1),
    "sve2-bitperm": (HWCAP2, 4),
    "f32mm": (HWCAP2, 10),
    "f64mm": (HWCAP2, 11),
    "i8mm": (HWCAP2, 13),
    "bf16": (HWCAP2, 14),
    "sme": (HWCAP2, 23),
    "sme-i16i64": (HWCAP2, 24),
    "sme-f64f64": (HWCAP2, 25),
    "sve2p1": (HWCAP2, 36),
    "sme2": (HWCAP2, 37),
}


def _vector_length(b: Builder, request: int) -> Value:
    """Bytes of the scalable vectors of this thread: `prctl`'s answer without the flags above it."""
    zero = const_int(I64, 0)
    answer = b.call_named("prctl", I32, [const_int(I32, request), zero, zero, zero, zero], "length", "nounwind").value
    return b.binary("and", answer, const_int(I32, LENGTH_MASK))


def _has_length(version: Target) -> bool:
    """Whether a version's vectors must have its length: those of SVE and of streaming mode."""
    return any(f"+{feature}" in version.features for feature in ("sve", "sme"))


def _fits_length(b: Builder, version: Target) -> Value:
    """Whether the machine's vectors are exactly as long as the version's: code is compiled for one length."""
    request = LENGTH_REQUESTS["sme" if "+sme" in version.features else "sve"]
    return b.icmp("eq", _vector_length(b, request), version.vector_bytes)


DETECT: Final = FeatureDetector(HWCAP_BITS, has_length=_has_length, fits_length=_fits_length)
