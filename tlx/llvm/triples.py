"""Target triples: their normal form, and the baseline features that they imply.

armv7-linux-gnueabihf -> armv7-unknown-linux-gnueabihf      LLVM would parse `linux` as the vendor, and pass floats in
                                                            integer registers
riscv64-unknown-linux-gnu: +m,+a,+f,+d,+c                   the baseline of Linux distributions; LLVM's default has no
                                                            floating-point registers, and linkers reject a mix of both
                                                            ABIs
"""

from __future__ import annotations

import platform
import re
import sys
from typing import Final

_SYSTEM: Final = re.compile(
    r"(linux|freebsd|netbsd|openbsd|kfreebsd|dragonfly|fuchsia|haiku|hurd|solaris|aix|darwin|macosx?|ios|tvos|watchos|"
    r"driverkit|windows|win32|uefi|emscripten|wasi|rtems|amdhsa|amdpal|mesa3d|cuda|vulkan|serenity|none)[\d.]*"
)
_ENVIRONMENT: Final = re.compile(r"(gnu|musl|eabi|android|msvc|itanium|cygnus|elf|macho|coff|ohos)\w*")
_HARD_FLOAT: Final = re.compile(r"(gnu|musl)?eabihf\w*")
_ABI: Final = re.compile(r'!"target-abi"')
_RISCV: Final = ("+m", "+a", "+f", "+d", "+c")
_ARM: Final = ("+v6k", "+vfp2")


def normalized(triple: str) -> str:
    """A triple with all components in order: architecture, vendor, system, environment."""
    parts = triple.split("-")
    if len(parts) in (2, 3) and _SYSTEM.fullmatch(parts[1]):
        parts.insert(1, "unknown")
    elif len(parts) == 2 and _ENVIRONMENT.fullmatch(parts[1]):
        parts[1:1] = ["unknown", "unknown"]
    return "-".join(parts)


_SPELLINGS: Final = {"arm64": "aarch64", "ppc64le": "powerpc64le", "ppc64": "powerpc64", "riscv64gc": "riscv64"}

_BIG_ENDIAN: Final = frozenset({"m68k", "mips", "mips64", "powerpc", "powerpc64", "s390x", "sparc", "sparcv9"})
"""Architectures whose names do not say it, as those of `aarch64_be` and `armeb` do."""


def architecture(triple: str) -> str:
    """The architecture of a triple, or of one as the system spells it: `powerpc64le` for `ppc64le`."""
    name = triple.partition("-")[0]
    return _SPELLINGS.get(name, name)


def may_be_linux(triple: str) -> bool:
    """Whether programs for a triple may run on Linux: it names Linux, or no system; empty is this machine's."""
    parts = normalized(triple).split("-")
    system = _SYSTEM.fullmatch(parts[2]) if len(parts) > 2 else None
    return system is None or system[1] == "linux"


def is_big_endian(triple: str) -> bool:
    """Whether the machines of a triple keep the most significant byte of a word first."""
    name = architecture(triple)
    return name.endswith(("eb", "_be")) or name in _BIG_ENDIAN


_FULL_NAN: Final = re.compile(r"hexagon|mips|sparc")


def has_full_nan(triple: str) -> bool:
    """Whether arithmetic on machines of a triple makes NaN with bits in the lower half of a float.

    Hexagon's has all bits set; that of most others, 0x7FC00000 or 0xFFC00000, is a bfloat.
    """
    return _FULL_NAN.match(architecture(triple or native_triple())) is not None


_WITHOUT_BFLOAT: Final = re.compile(r"powerpc|ppc|s390x|systemz|mips|sparc|ve$|wasm")


def has_bfloat(triple: str) -> bool:
    """Whether LLVM's backend for a triple, or for this machine if it is empty, selects code for bfloat.

    The others stop with `Cannot select: ... bf16_to_fp` or `fp_to_bf16` (LLVM 15 to 22).
    """
    return _WITHOUT_BFLOAT.match(architecture(triple or native_triple())) is None


def native_triple() -> str:
    """The triple of this machine without the environment, which LLVM adds."""
    return f"{platform.machine()}-unknown-{sys.platform}"


def baseline(triple: str, text: str = "") -> tuple[str, ...]:
    """Features that clang enables by default for a platform and LLVM does not.

    They determine the calling convention of floats.

    Args:
        triple: The target triple.
        text: A module; if it has the flag `target-abi`, that takes precedence.
    """
    architecture, _, system, environment, *_ = (*normalized(triple).split("-"), "", "", "")
    hosted = bool(_SYSTEM.fullmatch(system)) and not system.startswith("none")
    if architecture in ("riscv64", "riscv32") and hosted and not _ABI.search(text):
        return _RISCV
    if architecture in ("arm", "armeb") and _HARD_FLOAT.fullmatch(environment):
        return _ARM
    return ()


_PRESUMED: Final = {"power9-vector": "direct-move"}
"""What LLVM's backends select code for with a feature, although the feature does not imply it."""


def presumed_features(features: str) -> tuple[str, ...]:
    """Features that LLVM's backends presume with some features, `+a,-b`, and without which they crash."""
    words = features.split(",")
    return tuple(f"+{presumed}" for feature, presumed in _PRESUMED.items() if f"+{feature}" in words)


_TRIPLE: Final = re.compile(r'(?m)^target triple = "([^"]*)"')


def triple_of(text: str) -> str:
    """A module's target triple; empty if it has none."""
    start = text.find("target triple")  # faster than a search for lines that begin with it
    match = _TRIPLE.search(text, start) if start >= 0 else None
    return match[1] if match else ""


_NODE: Final = re.compile(r"(?m)^!(\d+) = ")
_HARD_FLOAT_ABIS: Final = {"riscv64": "lp64d", "riscv32": "ilp32d"}


def with_platform(text: str, triple: str) -> str:
    """A module's text with a triple, and with the ABI that the triple implies where LLVM would take another.

    Linkers reject objects of RISC-V with different ABIs for floats; LLVM's own is that of machines without floats.

    Args:
        text: The module.
        triple: The triple, in place of the module's.
    """
    line = f'target triple = "{normalized(triple)}"'
    text = _TRIPLE.sub(line, text, count=1) if _TRIPLE.search(text) else f"{line}\n\n{text}"
    abi = _HARD_FLOAT_ABIS.get(architecture(triple)) if "+d" in baseline(triple, text) else None
    if abi is None:
        return text
    node = max((int(number) for number in _NODE.findall(text)), default=-1) + 1
    return f'{text.rstrip()}\n\n!llvm.module.flags = !{{!{node}}}\n!{node} = !{{i32 1, !"target-abi", !"{abi}"}}\n'
