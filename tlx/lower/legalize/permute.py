"""Permutations of the elements of a register of 64 bytes by one instruction, VPERMW or VPERMB.

    %order = call <64 x i8> asm "", "=v,0"(<64 x i8> <i8 0, i8 16, i8 32, i8 48, i8 1, ...>)
    %permuted = call <64 x i8> @llvm.x86.avx512.permvar.qi.512(<64 x i8> %register, <64 x i8> %order)

Were the order known, LLVM's optimiser would make a shuffle of it and merge that with what the register was joined of:
of four rows of 16 bytes, 11 instructions (LLVM 22, -O2) where two inserts from memory, one of half a register and the
permutation do; of two rows of 32 bytes, VPERMT2W in place of an insert from memory and VPERMW.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.types import IntType, Type, VectorType, bits_of
from tlx.ir.values import Value, const_ints
from tlx.lower.legalize.registers import storage

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.target import Target

Permute = Callable[[Value, Sequence[int]], Value]
"""A register and the old places of its elements, in their new order, to the register permuted."""

_REGISTER_BITS: Final = 512
_INSTRUCTIONS: Final = {8: ("+avx512vbmi", "qi"), 16: ("+avx512bw", "hi")}


def permuter(b: Builder, element: Type, target: Target) -> Permute | None:
    """What permutes elements of a type in the block that is being written; None where no instruction does."""
    bits = bits_of(storage(element))
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
