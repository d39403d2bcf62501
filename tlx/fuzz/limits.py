"""Limits of LLVM's backends: a program that LLVM cannot compile, whatever TLX makes of it, is refused, not failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class BackendLimit:
    """Something that a backend of LLVM cannot compile.

    Attributes:
        reason: What it cannot compile.
        error: Pattern of LLVM's error message.
        program: Pattern of the programs that may hit the limit; empty if any may.
        feature: The feature that the code is compiled for; empty if any.
        is_foreign: Whether only backends of other machines have the limit.
    """

    reason: str
    error: str
    program: str = ""
    feature: str = ""
    is_foreign: bool = True


BACKEND_LIMITS: Final = (
    BackendLimit(
        "LLVM's backend has no such vectors of bfloat with +avx512bf16",
        r"soft promote this operator's operand|Cannot select: \S+ v\d+bf16 = ",
        feature="+avx512bf16",
        is_foreign=False,
    ),
    BackendLimit(
        "LLVM's backend cannot compare more than 8 halves with AVX-512 but without AVX512BW",
        r"Cannot select: \S+ v16f32 = X86ISD::CMPP |X86ISelLowering\.cpp:\d+: llvm::SDValue LowerVSETCC\(",
        r"<(?:9|\d\d+) x half>",
        is_foreign=False,
    ),
    BackendLimit(
        "LLVM's backend cannot select vectors of half by one condition with +avx512fp16",
        r"Cannot select: \S+ v\d+f16 = X86ISD::CMOV ",
        r"select i1 \S+, <\d+ x half>",
        feature="+avx512fp16",
        is_foreign=False,
    ),
    BackendLimit(
        "LLVM's backend for Power cannot pass bfloat",
        r"Cannot select: \S+ \S+ = (?:bf16_to_fp|fp_to_bf16)\b",
        r"(?m)^define [^{]*\bbfloat [%@]|^define [^{]*<\d+ x bfloat>",
    ),
    BackendLimit(
        "LLVM's backend for Power cannot canonicalize vectors",
        r"Cannot select: \S+ \S+ = fcanonicalize\b",
        r"@llvm\.canonicalize\.v\d+",
    ),
    BackendLimit(
        "the emulated machine's C library has no such function",
        r"cannot be linked: [^;]*undefined symbol: \w+",
        r"@llvm\.(?:a?sin|a?cos|a?tan|atan2|sinh|cosh)\.",
    ),
    BackendLimit(
        "LLVM's backend cannot pass vectors of hundreds of elements without optimisation",
        r"Emergency spill slot is out of reach|Incomplete scavenging after 2nd pass",
        r"(?m)^define [^{]*<\d{3,} x ",
    ),
    BackendLimit(
        "LLVM's backend for Hexagon cannot reduce half a register of i1",
        r"v64i1 = truncate",
        r"@llvm\.vector\.reduce\.\w+\.v64i1",
    ),
    BackendLimit("LLVM takes too long for another machine's code", r"LLVM took more than \d+ s of CPU time"),
)
"""All but the C library and the last concern a program's own functions and calls, which TLX leaves as they are. On this
machine, a timeout does not count as a limit of LLVM, as it may show that TLX's functions are too large."""


def backend_limit(error: str, program: str, features: tuple[str, ...], *, is_foreign: bool) -> str:
    """Which limit of LLVM's backend made it fail; empty if none is known.

    Args:
        error: LLVM's error message.
        program: The program's text.
        features: The features that its code is compiled for.
        is_foreign: Whether the code is for another machine, and runs under an emulator.
    """
    for limit in BACKEND_LIMITS:
        if (limit.feature and limit.feature not in features) or (limit.is_foreign and not is_foreign):
            continue
        if re.search(limit.error, error) and re.search(limit.program, program):
            return limit.reason
    return ""
