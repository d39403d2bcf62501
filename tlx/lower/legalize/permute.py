"""Permutations of the elements of a register of 64 bytes by one instruction, VPERMW or VPERMB; of two, VPERMI2PS.

    %order = call <64 x i8> asm "", "=v,0"(<64 x i8> <i8 0, i8 16, i8 32, i8 48, i8 1, ...>)
    %permuted = call <64 x i8> @llvm.x86.avx512.permvar.qi.512(<64 x i8> %register, <64 x i8> %order)

Were the order known, LLVM's optimiser would make a shuffle of it and merge that with what the register was joined of:
of four rows of 16 bytes, 11 instructions (LLVM 22, -O2) where two inserts from memory, one of half a register and the
permutation do; of two rows of 32 bytes, VPERMT2W in place of an insert from memory and VPERMW.

    %gathered = call <16 x float> @llvm.x86.avx512.vpermi2var.ps.512(<16 x float> %x, <16 x i32> <i32 1073741824,
        i32 1073741826, ...>, <16 x float> %y)

An order of words is one of 64 bytes, which LLVM 19 and later shorten to 16, and widen by VPMOVSXBD on a port that
multiplies. The instructions ignore the upper bits of an order; with one of them set, no shorter one will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.types import DOUBLE, FLOAT, I32, I64, IntType, Type, VectorType, bits_of
from tlx.ir.values import Value, const_ints
from tlx.lower.legalize.registers import Gather, Permute, register_element

if TYPE_CHECKING:
    from tlx.ir.builder.instructions import Builder
    from tlx.target.target import Target

_REGISTER_BITS: Final = 512
_IGNORED: Final = 1 << 30
_WORDS: Final[dict[Type, tuple[str, str, IntType]]] = {FLOAT: ("sf", "ps", I32), DOUBLE: ("df", "pd", I64)}
_INSTRUCTIONS: Final = {8: ("+avx512vbmi", "qi"), 16: ("+avx512bw", "hi")}


def permuter(b: Builder, element: Type, target: Target) -> Permute | None:
    """What permutes elements of a type in the block that is being written; None where no instruction does."""
    bits = bits_of(register_element(element))
    feature, suffix = _INSTRUCTIONS.get(bits, ("", ""))
    if feature not in target.features:
        return None
    word = IntType(bits)
    words = VectorType(_REGISTER_BITS // bits, word)
    orders: dict[tuple[int, ...], Value] = {}

    def permute(register: Value, places: Sequence[int]) -> Value:
        key = tuple(places)
        if key not in orders:
            orders[key] = b.opaque(const_ints(word, key), "order")
        source = b.cast("bitcast", register, words)
        name = f"llvm.x86.avx512.permvar.{suffix}.{_REGISTER_BITS}"
        return b.cast("bitcast", b.call_named(name, words, [source, orders[key]], "permuted").value, register.type)

    return permute


def gatherer(b: Builder, target: Target) -> Gather | None:
    """What gathers floats and doubles from registers of 64 bytes; None where no instruction does."""
    if "+avx512f" not in target.features:
        return None

    def gather(registers: Sequence[Value], places: Sequence[int]) -> Value:
        type_ = registers[0].type
        assert isinstance(type_, VectorType)
        one, two, word = _WORDS[type_.element]
        order = const_ints(word, [_IGNORED + place for place in places])
        if len(registers) == 1:
            name, args = f"permvar.{one}", [registers[0], order]
        else:
            name, args = f"vpermi2var.{two}", [registers[0], order, registers[1]]
        return b.call_named(f"llvm.x86.avx512.{name}.{_REGISTER_BITS}", type_, args, "gathered").value

    return gather


def gathers(register: Value) -> bool:
    """Whether a gatherer knows a register's type."""
    type_ = register.type
    return (
        isinstance(type_, VectorType)
        and type_.element in _WORDS
        and type_.count * bits_of(type_.element) == _REGISTER_BITS
    )
