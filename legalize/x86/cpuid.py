"""CPUID: asked by a program, about which of several targets it can run, and by this process, about unlisted features.

A program finds the last target that the processor runs, without any library:

    leaf 0: is there a leaf 7?      leaf 1: may XCR0 be read?       otherwise it is the first target
    XCR0: which registers the system saves      leaves 7.0 and 7.1: the features
    a target's features and registers are all there -> that target; the last such counts

Tiles also need Linux's permission. Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID and
XGETBV; Linux, Documentation/arch/x86/xstate.rst.

Linux does not list features in /proc/cpuinfo that it has no use for (arch/x86/include/asm/cpufeatures.h: names that are
empty). They need no registers but those that come with listed features, so a few bytes of machine code that execute
CPUID tell of them; where the system forbids that, nothing is found.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from tlx.diagnostics import UsageError
from tlx.ir.types import I32, I64, PTR, StructType
from tlx.ir.values import ConstInt, Text, const_int
from tlx.legalize.x86.features import CPUID_BITS, TUNING_PREFIXES, XCR0_TILES, CpuidBit

if TYPE_CHECKING:
    from tlx.ir.builder.instructions import Builder
    from tlx.ir.values import Value
    from tlx.target.target import Target

_REGISTERS: Final = ("eax", "ebx", "ecx", "edx")
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
    """The last of the targets, counted from 1, that the processor runs; the first is taken for granted.

    Args:
        b: At the end of a function's entry block.
        versions: The targets.
        request_permission: Whether Linux is asked for the use of tiles, rather than whether it was given.
    """
    head = b.block
    enough = b.icmp("ugt", _word(b, _cpuid(b, 0, 0), 0), 6)
    saves = b.icmp("ne", b.binary("and", _word(b, _cpuid(b, 1, 0), 2), const_int(I32, 1 << _OSXSAVE)), 0)
    ask = b.new_block("ask")
    end = b.new_block("end", ask)
    b.branch_if(b.binary("and", enough, saves), ask, end)
    b.at_end(ask)
    answers = _Answers(b)
    found: Value = const_int(I32, 1)
    for number, target in enumerate(versions[1:], 2):
        runs = answers.has(target)
        if "+amx-tile" in target.features:
            found = _if_permitted(b, runs, found, number, request_permission=request_permission)
        else:
            found = b.select(runs, const_int(I32, number), found)
    last = b.block
    b.branch(end)
    b.at_end(end)
    return b.phi(I32, [(const_int(I32, 1), head), (found, last)], "level")


class _Answers:
    """What CPUID says, each leaf asked once."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.state = _word(b, _asm(b, _XGETBV, 2, [0]), 0)
        self.first = _cpuid(b, 1, 0)
        self.leaves: dict[tuple[int, int], Value] = {(1, 0): self.first, (7, 0): _cpuid(b, 7, 0)}
        self.leaves[7, 1] = _cpuid(b, 7, 1)
        known = b.icmp("ne", _word(b, self.leaves[7, 0], 0), 0)
        self.second = b.select(known, const_int(I32, -1), const_int(I32, 0))

    def has(self, target: Target) -> Value:
        """Whether the processor has all features of a target, and the system saves their registers."""
        b = self.b
        masks: dict[tuple[int, int, str], int] = {}
        state = 0
        for bit in _bits(target):
            place = bit.leaf, bit.subleaf, bit.register
            masks[place] = masks.get(place, 0) | 1 << bit.bit
            state |= bit.state
        runs: Value = _has_all(b, self.state, state)
        for (leaf, subleaf, register), mask in masks.items():
            word = _word(b, self.leaves[leaf, subleaf], _REGISTERS.index(register))
            word = b.binary("and", word, self.second) if subleaf else word
            runs = b.binary("and", runs, _has_all(b, word, mask))
        return runs


def _bits(target: Target) -> list[CpuidBit]:
    """What CPUID tells of a target's features, but for those that only say how fast something is.

    Raises:
        UsageError: It does not tell of one.
    """
    names = [feature[1:] for feature in target.features if not feature[1:].startswith(TUNING_PREFIXES)]
    for name in names:
        if name not in CPUID_BITS:
            raise UsageError(
                f"feature '{name}': a program with versions for several targets cannot find out whether its machine "
                f"has that; lower for one target, or without it"
            )
    return [CPUID_BITS[name] for name in names]


def _has_all(b: Builder, word: Value, mask: int) -> Value:
    number = ConstInt(I32, mask - (1 << 32) if mask >> 31 else mask)
    return b.icmp("eq", b.binary("and", word, number), number)


def _if_permitted(b: Builder, runs: Value, found: Value, number: int, *, request_permission: bool) -> Value:
    """The number if the processor runs that target and Linux lets the process use tiles."""
    head = b.block
    ask = b.new_block("permission")
    rest = b.new_block("rest", ask)
    b.branch_if(runs, ask, rest)
    b.at_end(ask)
    given = b.icmp("eq", request_tiles(b), 0) if request_permission else _was_given(b)
    permitted = b.select(given, const_int(I32, number), found)
    b.branch(rest)
    b.at_end(rest)
    return b.phi(I32, [(found, head), (permitted, ask)], "level")


def request_tiles(b: Builder, name: str = "answer") -> Value:
    """Ask Linux for the use of tiles: 0, or an error."""
    return _arch_prctl(b, _REQUEST_PERMISSION, const_int(I64, _TILE_DATA), name)


def _was_given(b: Builder) -> Value:
    memory = b.alloca(I64, "permissions", 8)
    b.store(const_int(I64, 0), memory, 8)
    address = b.cast("ptrtoint", memory, I64)
    _arch_prctl(b, _GET_PERMISSION, address)
    bit = b.binary("and", b.load(I64, memory, 8), const_int(I64, XCR0_TILES & 1 << _TILE_DATA))
    return b.icmp("ne", bit, 0)


def _arch_prctl(b: Builder, code: int, argument: Value, name: str = "answer") -> Value:
    number, operation = const_int(I64, 158), const_int(I64, code)
    operands = [Text(PTR, _ARCH_PRCTL), number, operation, argument]
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
    instruction = b.emit("call", type_, [Text(PTR, asm), *arguments], body, "words")
    instruction.arg_attributes = ("",) * len(arguments)
    return instruction.value


def _word(b: Builder, words: Value, index: int) -> Value:
    instruction = b.emit("extractvalue", I32, [words], f"extractvalue {words.typed}, {index}", "word")
    instruction.indices = (index,)
    return instruction.value


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
def unlisted_features() -> frozenset[str]:
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

    return frozenset(name for name in _UNLISTED if _has_bit(cpuid, CPUID_BITS[name]))


def _has_bit(cpuid: Callable[[int, int], list[int]], bit: CpuidBit) -> bool:
    if cpuid(0, 0)[0] < bit.leaf or cpuid(bit.leaf, 0)[0] < bit.subleaf:
        return False
    return bool(cpuid(bit.leaf, bit.subleaf)[_REGISTERS.index(bit.register)] >> bit.bit & 1)
