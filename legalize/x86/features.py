"""Features of x86-64 processors by LLVM's names, and their detection by CPUID.

Intel Architecture Instruction Set Extensions Programming Reference, chapter 1 (support matrix, CPUID); Intel 64 and
IA-32 Architectures Software Developer's Manual, volume 1, chapter 13 (XCR0); LLVM, lib/TargetParser/X86TargetParser.cpp

A program detects the last of several targets that the processor supports, without any library:

    leaf 0: is there a leaf 7?      leaf 1: may XCR0 be read?       otherwise it is the first target
    XCR0: which registers the system saves      leaves 7.0 and 7.1: the features
    the last target whose features and registers are all present

Tiles also need Linux's permission. Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID and
XGETBV; Linux, Documentation/arch/x86/xstate.rst.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import UsageError
from tlx.ir.types import I32, I64, PTR, StructType
from tlx.ir.values import ConstInt, OpaqueConstant, const_int
from tlx.legalize.x86.host import CPUID_BITS, REGISTERS, XCR0_TILES, CpuidBit
from tlx.target.machines import Processor

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value
    from tlx.target.target import Target

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
"""Prefixes of LLVM's tuning features, which do not affect what a processor can run."""

_AVX2: Final = ("avx2", "fma", "f16c")
_AVX512: Final = (*_AVX2, "avx512f", "avx512bw", "avx512dq", "avx512vl")
_VNNI: Final = (*_AVX512, "avx512vnni")
_BF16: Final = (*_VNNI, "avx512bf16")
_ICE: Final = (*_VNNI, "avx512vbmi")
_ZEN4: Final = (*_BF16, "avx512vbmi")
_SAPPHIRE: Final = (*_ZEN4, "avxvnni", "avx512fp16", "amx-tile", "amx-bf16", "amx-int8")
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

PROCESSORS: Final = {name: Processor(features) for name, features in CPU_FEATURES.items()}

_CLOBBERS: Final = "~{dirflag},~{fpsr},~{flags}"
_CPUID: Final = f'asm sideeffect "cpuid", "={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}},{_CLOBBERS}"'
_XGETBV: Final = f'asm sideeffect "xgetbv", "={{ax}},={{dx}},{{cx}},{_CLOBBERS}"'
_ARCH_PRCTL: Final = (
    f'asm sideeffect "syscall", "={{ax}},{{ax}},{{di}},{{si}},~{{rcx}},~{{r11}},~{{memory}},{_CLOBBERS}"'
)
_OSXSAVE: Final = 27
_GET_PERMISSION: Final = 0x1022
_REQUEST_PERMISSION: Final = 0x1023
_TILE_DATA: Final = 18


def emit_detection(b: Builder, versions: Sequence[Target], *, request_permission: bool) -> Value:
    """The last of the targets, counted from 1, that the processor supports; the first is assumed to be supported.

    Args:
        b: At the end of a function's entry block.
        versions: The targets.
        request_permission: Whether to request the use of tiles from Linux, rather than only query the permission.
    """
    head = b.block
    has_leaf_7 = b.icmp("ugt", _word(b, _cpuid(b, 0, 0), 0), 6)
    has_xgetbv = b.icmp("ne", b.binary("and", _word(b, _cpuid(b, 1, 0), 2), const_int(I32, 1 << _OSXSAVE)), 0)
    query = b.new_block("query")
    end = b.new_block("end", query)
    b.branch_if(b.binary("and", has_leaf_7, has_xgetbv), query, end)
    b.at_end(query)
    results = _CpuidResults(b)
    version: Value = const_int(I32, 1)
    for number, target in enumerate(versions[1:], 2):
        supported = results.has(target)
        if "+amx-tile" in target.features:
            version = _if_permitted(b, supported, version, number, request_permission=request_permission)
        else:
            version = b.select(supported, const_int(I32, number), version)
    last = b.block
    b.branch(end)
    b.at_end(end)
    return b.phi(I32, [(const_int(I32, 1), head), (version, last)], "level")


class _CpuidResults:
    """The results of CPUID; each leaf is queried once."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.state = _word(b, _asm(b, _XGETBV, 2, [0]), 0)
        self.leaves: dict[tuple[int, int], Value] = {(1, 0): _cpuid(b, 1, 0), (7, 0): _cpuid(b, 7, 0)}
        self.leaves[7, 1] = _cpuid(b, 7, 1)
        has_subleaf = b.icmp("ne", _word(b, self.leaves[7, 0], 0), 0)
        self.subleaf_mask = b.select(has_subleaf, const_int(I32, -1), const_int(I32, 0))

    def has(self, target: Target) -> Value:
        """Whether the processor has all features of a target, and the system saves their registers."""
        b = self.b
        masks: dict[tuple[int, int, str], int] = {}
        state = 0
        for bit in _bits(target):
            word = bit.leaf, bit.subleaf, bit.register
            masks[word] = masks.get(word, 0) | 1 << bit.bit
            state |= bit.state
        supported: Value = _has_all(b, self.state, state)
        for (leaf, subleaf, register), mask in masks.items():
            word = _word(b, self.leaves[leaf, subleaf], REGISTERS.index(register))
            word = b.binary("and", word, self.subleaf_mask) if subleaf else word
            supported = b.binary("and", supported, _has_all(b, word, mask))
        return supported


def _bits(target: Target) -> list[CpuidBit]:
    """The CPUID bits of a target's features, except tuning features.

    Raises:
        UsageError: A feature has no CPUID bit.
    """
    names = [feature[1:] for feature in target.features if not feature[1:].startswith(TUNING_PREFIXES)]
    for name in names:
        if name not in CPUID_BITS:
            raise UsageError(
                f"feature '{name}': a program with versions for several targets cannot detect it at run time; "
                f"lower for one target, or without the feature"
            )
    return [CPUID_BITS[name] for name in names]


def _has_all(b: Builder, word: Value, mask: int) -> Value:
    number = ConstInt(I32, mask - (1 << 32) if mask >> 31 else mask)
    return b.icmp("eq", b.binary("and", word, number), number)


def _if_permitted(b: Builder, supported: Value, version: Value, number: int, *, request_permission: bool) -> Value:
    """`number` if the processor supports that target and Linux lets the process use tiles, else `version`."""
    head = b.block
    query = b.new_block("permission")
    rest = b.new_block("rest", query)
    b.branch_if(supported, query, rest)
    b.at_end(query)
    granted = b.icmp("eq", request_tiles(b), 0) if request_permission else _has_permission(b)
    permitted = b.select(granted, const_int(I32, number), version)
    b.branch(rest)
    b.at_end(rest)
    return b.phi(I32, [(version, head), (permitted, query)], "level")


def request_tiles(b: Builder, name: str = "answer") -> Value:
    """Request the use of tiles from Linux; 0, or an error."""
    return _arch_prctl(b, _REQUEST_PERMISSION, const_int(I64, _TILE_DATA), name)


def _has_permission(b: Builder) -> Value:
    """Whether Linux lets the process use tiles."""
    memory = b.alloca(I64, "permissions", 8)
    b.store(const_int(I64, 0), memory, 8)
    address = b.cast("ptrtoint", memory, I64)
    _arch_prctl(b, _GET_PERMISSION, address)
    bit = b.binary("and", b.load(I64, memory, 8), const_int(I64, XCR0_TILES & 1 << _TILE_DATA))
    return b.icmp("ne", bit, 0)


def _arch_prctl(b: Builder, code: int, argument: Value, name: str = "answer") -> Value:
    number, operation = const_int(I64, 158), const_int(I64, code)
    operands = [OpaqueConstant(PTR, _ARCH_PRCTL), number, operation, argument]
    body = f"call i64 {_ARCH_PRCTL}({number.typed}, {operation.typed}, {argument.typed})"
    instruction = b.emit("call", I64, operands, body, name)
    instruction.arg_attributes = ("",) * 3
    return instruction.value


def _cpuid(b: Builder, leaf: int, subleaf: int) -> Value:
    return _asm(b, _CPUID, 4, [leaf, subleaf])


def _asm(b: Builder, asm: str, results: int, numbers: Sequence[int]) -> Value:
    type_ = StructType((I32,) * results)
    arguments = [const_int(I32, number) for number in numbers]
    body = f"call {type_} {asm}({', '.join(a.typed for a in arguments)})"
    instruction = b.emit("call", type_, [OpaqueConstant(PTR, asm), *arguments], body, "words")
    instruction.arg_attributes = ("",) * len(arguments)
    return instruction.value


def _word(b: Builder, words: Value, index: int) -> Value:
    instruction = b.emit("extractvalue", I32, [words], f"extractvalue {words.typed}, {index}", "word")
    instruction.indices = (index,)
    return instruction.value
