"""What to do where LLVM makes no code: its own words name what stopped it, and seldom a way out."""

from __future__ import annotations

import re
from typing import Final

from tlx.diagnostics import Note
from tlx.llvm.triples import normalized

_NO_CPU: Final = re.compile(r"(amdgcn|r600|nvptx|spirv|dxil|bpf)")

# What LLVM says, and what that calls for; the first that fits.
_ADVICE: Final = (
    (
        r"Invalid HVX vector length",
        "features of HVX need the length of its vectors: --mattr=+hvxv66,+hvx-length128b",
    ),
    (
        r"can't emit a file of this type|createMCCodeEmitter failed",
        "LLVM writes no object files for this triple: take --emit=asm and an assembler of the platform",
    ),
    (
        r"Inline asm not supported by this streamer",
        "this LLVM assembles for the machine that it runs on: take --emit=asm, and an assembler of the platform",
    ),
    (
        r"No available targets|Unable to find target|invalid target triple",
        "this LLVM has no backend for the triple: take --emit=ll, and compile that by an LLVM that has one",
    ),
    (
        r"soft promote this operator's operand",
        "LLVM has no vectors of 9, 17, 33, ... bfloat for AVX512-BF16: pad them, or compile without avx512bf16",
    ),
    (
        r"Cannot select: .*intrinsic|Cannot select: intrinsic",
        "an intrinsic needs features, or a machine, other than those asked for: see --mattr, --mcpu and --mtriple",
    ),
    (
        r"Hard-float .* ABI can't be used",
        "the module's flag target-abi asks for registers that the features lack: add them by --mattr=+f,+d",
    ),
)


def advice(said: str, triple: str) -> list[Note]:
    """What to do about LLVM's words.

    Args:
        said: Why it gave up.
        triple: The machine; empty for this one.
    """
    text = " ".join(said.split())
    found = next((what for pattern, what in _ADVICE if re.search(pattern, text)), "")
    if not found and _NO_CPU.match(normalized(triple)):
        found = (
            f"TLX makes code for processors that have one stack and call functions, and '{triple}' has not: take "
            "--emit=ll for what LLVM is given"
        )
    if not found:
        found = (
            "LLVM's backend gave up, on IR that it verified: another -O or fewer features may do, or --emit=ll and "
            "another version of LLVM; if plain LLVM IR like it compiles, please report it with the input"
        )
    return [Note(found)]
