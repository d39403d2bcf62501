"""Permutations of the elements of one register, and of two, by the instructions that a target has for them.

    %order = call <64 x i8> asm "", "=v,0"(<64 x i8> <i8 0, i8 16, i8 32, i8 48, i8 1, ...>)
    %permuted = permute(<64 x i8> %register, <64 x i8> %order)

Were the order known, LLVM's optimiser would make a shuffle of it and merge that with what the register was joined of.
On x86, of four rows of 16 bytes: 11 instructions (LLVM 22, -O2) where two inserts from memory, one of half a register
and the permutation do; of two rows of 32 bytes, a permutation of two registers in place of an insert from memory and a
permutation of one.

    %gathered = permute(<16 x float> %x, <16 x float> %y, <16 x i32> <i32 1073741824, i32 1073741826, ...>)

LLVM 19 and later shorten an order of 64 bytes to 16, and widen it by an instruction on a port that multiplies.
Permutations ignore the upper bits of an order; with one of them set, no shorter one will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.types import IntType, Type, VectorType, bits_of
from tlx.ir.values import Value, const_ints
from tlx.lower.legalize.registers import Gather, Permute, register_element

if TYPE_CHECKING:
    from tlx.ir.builder.instructions import Builder
    from tlx.target.target import Target

_IGNORED: Final = 1 << 30
_MOST_REGISTERS: Final = 2


def permuter(b: Builder, element: Type, target: Target) -> Permute | None:
    """What permutes elements of a type in the block that is being written; None where LLVM's shuffles do as well."""
    bits, permutes = bits_of(register_element(element)), target.permutes
    if permutes is None or bits not in permutes.opaque or not permutes.permutes(bits, target.features):
        return None
    word = IntType(bits)
    words = VectorType(permutes.register_bytes * 8 // bits, word)
    orders: dict[tuple[int, ...], Value] = {}

    def permute(register: Value, places: Sequence[int]) -> Value:
        key = tuple(places)
        if key not in orders:
            orders[key] = b.opaque(const_ints(word, key), permutes.constraint, "order")
        source = b.cast("bitcast", register, words)
        return b.cast("bitcast", permutes.one(b, source, orders[key], "permuted"), register.type)

    return permute


def gatherer(b: Builder, target: Target) -> Gather | None:
    """What gathers elements of one or two whole registers; None where no instruction does."""
    permutes = target.permutes
    if permutes is None or not all(permutes.permutes(bits_of(e), target.features) for e in permutes.pairs):
        return None

    def gather(registers: Sequence[Value], places: Sequence[int]) -> Value | None:
        type_ = registers[0].type
        if not isinstance(type_, VectorType) or type_.element not in permutes.pairs:
            return None
        bits = bits_of(type_.element)
        if type_.count * bits != permutes.register_bytes * 8 or len(registers) > _MOST_REGISTERS:
            return None
        order = const_ints(IntType(bits), [_IGNORED + place for place in places])
        if len(registers) == 1:
            return permutes.one(b, registers[0], order, "gathered")
        return permutes.two(b, registers[0], registers[1], order, "gathered")

    return gather
