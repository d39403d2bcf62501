"""Which optional features x86-64 processors have, by the names that LLVM's `-mcpu` takes.

Intel Architecture Instruction Set Extensions Programming Reference, chapter 1 (support matrix); LLVM,
lib/TargetParser/X86TargetParser.cpp.
"""

from __future__ import annotations

from typing import Final

_VNNI: Final = ("avx512vnni",)
_BF16: Final = ("avx512vnni", "avx512bf16")
_SAPPHIRE: Final = (*_BF16, "avxvnni")
_HYBRID: Final = ("avxvnni",)

CPUS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(("skylake-avx512", "skx", "cannonlake", "knl", "knm"), ()),
    **dict.fromkeys(("haswell", "broadwell", "skylake", "znver1", "znver2", "znver3", "x86-64-v3", "x86-64-v4"), ()),
    **dict.fromkeys(("cascadelake", "icelake-client", "icelake-server", "tigerlake", "rocketlake"), _VNNI),
    **dict.fromkeys(("cooperlake", "znver4"), _BF16),
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d", "znver5"), _SAPPHIRE),
    **dict.fromkeys(("alderlake", "raptorlake", "meteorlake", "gracemont", "arrowlake", "arrowlake-s"), _HYBRID),
    **dict.fromkeys(("lunarlake", "pantherlake", "sierraforest", "grandridge", "clearwaterforest"), _HYBRID),
}
