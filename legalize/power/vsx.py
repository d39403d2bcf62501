"""`vsx`: POWER8 and later, of either byte order: 64 registers of 16 bytes.

Power ISA 3.1, volume I: XVMADDASP, VMSUMUBM, VMSUMMBM (signed times unsigned bytes), VMSUMSHM; from POWER9 on XVCVHPSP
and XVCVSPHP, which convert half.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import FLOAT, I8, I16, I32, VectorType
from tlx.legalize.power import TRIPLES
from tlx.legalize.power.features import DETECT, LINUX_NAMES, features_in_cpuinfo
from tlx.legalize.power.processors import POWER8, POWER8_CACHES, POWER8_CORE, PROCESSORS
from tlx.target.instructions.compilers import LlvmBackend
from tlx.target.instructions.dots import Dot, with_swapped_operands
from tlx.target.instructions.vectors import HalfConversions, NarrowFloats, VectorInstructions
from tlx.target.target import Detection, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from tlx.ir.builder import Builder
    from tlx.ir.values import Value
    from tlx.target.instructions.dots import DotEmitter, Sign

_WORDS: Final = VectorType(4, I32)
_HALFWORDS: Final = VectorType(8, I16)
_FLOATS: Final = VectorType(4, FLOAT)
_BYTES: Final = VectorType(16, I8)


def _multiply_sum(name: str, operand: VectorType, b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """A VMSUM instruction, whose operands come first."""
    operands = [b.cast("bitcast", register, operand) for register in (lhs, rhs)]
    return b.call_named(f"llvm.ppc.altivec.{name}", _WORDS, [*operands, acc], "acc").value


def _by_words(b: Builder, register: Value, convert: Callable[[Value], Value]) -> Value:
    """A function of registers of four words, applied to a register of any number of them."""
    assert isinstance(register.type, VectorType)
    count, lanes = register.type.count, _WORDS.count
    parts: list[Value] = []
    for start in range(0, count, lanes):
        mask = [i if i < count else -1 for i in range(start, start + lanes)]
        parts.append(convert(register if mask == list(range(count)) else b.shuffle(register, None, mask)))
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2] if len(parts) % 2 == 0 else [*parts[1::2], parts[-1]], strict=True)
        parts = [b.shuffle(x, y, range(2 * _lanes(x))) for x, y in pairs]
    return parts[0] if _lanes(parts[0]) == count else b.shuffle(parts[0], None, range(count))


def _lanes(register: Value) -> int:
    """Lanes of a register."""
    assert isinstance(register.type, VectorType)
    return register.type.count


def _widen_half(b: Builder, halves: Value) -> Value:
    """XVCVHPSP: the half in the lower halfword of each word, whatever the order of halfwords."""

    def convert(words: Value) -> Value:
        return b.call_named("llvm.ppc.vsx.xvcvhpsp", _FLOATS, [b.cast("bitcast", words, _HALFWORDS)], "wide").value

    return _by_words(b, b.cast("zext", halves, VectorType(_lanes(halves), I32)), convert)


def _narrow_half(b: Builder, floats: Value) -> Value:
    """XVCVSPHP: halves in the lower halfwords of words."""

    def convert(register: Value) -> Value:
        words = b.call_named("llvm.ppc.vsx.xvcvsphp", _FLOATS, [register], "narrow").value
        return b.cast("bitcast", words, _WORDS)

    return b.cast("trunc", _by_words(b, floats, convert), VectorType(_lanes(floats), I16))


_REGISTERS: Final = 61
"""Of 64: with more, LLVM 19 and 22 spill sums of float."""
_VMX_REGISTERS: Final = 30
"""Of the 32 that instructions of VMX, such as VMSUMUBM, use: if operands take all, LLVM 19 and 22 copy some of them."""
_vmsummbm: Final = partial(_multiply_sum, "vmsummbm", _BYTES)


def _dot(lhs: tuple[str, Sign], rhs: tuple[str, Sign], width: int, emit: DotEmitter) -> Dot:
    """A dot product to i32, which cannot use all registers."""
    return Dot(lhs, rhs, "i32", width, "altivec", emit, scratch_registers=_REGISTERS - _VMX_REGISTERS)


TARGET: Final = Target(
    name="vsx",
    title="Power with VSX: POWER8 and later",
    triples=TRIPLES,
    features=tuple(f"+{feature}" for feature in POWER8),
    backend=LlvmBackend(has_saturating_conversions=False),  # LLVM 19 converts one element after another
    vector_bytes=16,
    registers=_REGISTERS,
    dots=(
        _dot(("i8", "u"), ("i8", "u"), 4, partial(_multiply_sum, "vmsumubm", _BYTES)),
        _dot(("i8", "s"), ("i8", "u"), 4, _vmsummbm),
        _dot(("i8", "u"), ("i8", "s"), 4, with_swapped_operands(_vmsummbm)),
        _dot(("i16", "s"), ("i16", "s"), 2, partial(_multiply_sum, "vmsumshm", _HALFWORDS)),
    ),
    instructions=VectorInstructions(has_fma=True, has_rounding=True),
    narrow_floats=NarrowFloats(half_conversions=HalfConversions("power9-vector", _widen_half, _narrow_half)),
    caches=POWER8_CACHES,
    core=POWER8_CORE,
    cpus=PROCESSORS,
    requires=("vsx", "arch_2_07"),
    detection=Detection(
        linux_names=LINUX_NAMES, features_in_cpuinfo=features_in_cpuinfo, emit=DETECT, on_linux_only=True
    ),
)
