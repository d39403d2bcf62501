"""The meaning of Power's vector instructions in numpy.

Source: Power ISA 3.1, chapters 6 (vector facility) and 7 (VSX).

Vector instructions combine the elements of a word with those of the same word of other registers, so that the order of
words and of bytes in a register does not matter. An accumulator is four registers, the row of each word of A, and has
the bits of a `<512 x i1>`; a pair of registers has those of a `<256 x i1>`. Here, they are in the order of a
little-endian machine: LLVM's first operand of the intrinsics that assemble registers is the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tlx.evaluate.context import FunctionTable, ImplementationFactory, TargetSemantics, type_independent
from tlx.evaluate.scalars import fma
from tlx.evaluate.values import BFLOAT16, DType, to_odd
from tlx.intrinsics.numpy_types import Array


def _multiply_sum(lhs: type[Any], rhs: type[Any]) -> ImplementationFactory:
    """`vmsum*m`: each word of acc plus the products of the 4 bytes or 2 halfwords in that word, modulo 2^32."""
    width = 4 // np.dtype(lhs).itemsize

    def run(a: Array, b: Array, acc: Array) -> Array:
        products = a.view(lhs).astype(np.int64) * b.view(rhs).astype(np.int64)
        return acc + products.reshape(-1, width).sum(1).astype(np.uint32)

    return type_independent(run)


def _from_half(words: Array) -> Array:
    """`xvcvhpsp`: the half in the lower halfword of each word."""
    return (words.view(np.uint32) & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float32)


def _to_half(numbers: Array) -> Array:
    """`xvcvsphp`: rounded to nearest even, in the lower halfword of each word; the upper one is zero."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float16).view(np.uint16).astype(np.uint32).view(np.float32)


# Matrix-multiply assist ----------------------------------------------------------------------------------------------

_ROWS: Final = 4


def _assembled(*registers: Array) -> Array:
    """The bits of registers, of which the last one is the first row."""
    return np.unpackbits(np.concatenate([r.view(np.uint8) for r in reversed(registers)]), bitorder="little").view(bool)


def _disassembled(bits: Array) -> tuple[Array, ...]:
    """The rows of an accumulator."""
    return tuple(_registers(bits))


def _registers(bits: Array) -> Array:
    """The bytes of registers, one a row."""
    return np.packbits(bits, bitorder="little").reshape(-1, 16)


def _outer_product(
    operand: DType | type[Any], result: type[Any], add: Callable[[Array, Array, Array], Array]
) -> ImplementationFactory:
    """XV*GER*PP: acc + A @ B, for sums of type `result`.

    Args:
        operand: The type of elements of A; B has the same, but for bytes.
        result: The type of sums.
        add: The new sums from sums (4 x n), A (4 x 1 x v) and B (1 x n x v).
    """
    other = np.uint8 if operand is np.int8 else operand
    width = 8 if result is np.float64 else 4

    def run(acc: Array, a: Array, b: Array) -> Array:
        left = _registers(a) if a.dtype == np.bool_ else a
        left, right = (x.view(np.uint8).reshape(-1, width).view(kind) for x, kind in ((left, operand), (b, other)))
        sums = _registers(acc).view(result)
        with np.errstate(all="ignore"):
            total = add(sums, left[:, None], right[None])
        return np.unpackbits(total.astype(result).view(np.uint8).reshape(-1), bitorder="little").view(bool)

    return type_independent(run)


def _add_products(sums: Array, left: Array, right: Array) -> Array:
    """A multiply-add with one rounding."""
    shape = np.broadcast_shapes(left.shape[:2], right.shape[:2])
    x, y = (np.broadcast_to(operand[..., 0], shape).reshape(-1) for operand in (left, right))
    return fma(x, y, sums.reshape(-1)).reshape(shape)


def _add_pairs(sums: Array, left: Array, right: Array) -> Array:
    """The sum of two products, rounded once, then added to the sums; subnormal numbers are exact."""
    products = left.astype(np.float64) * right.astype(np.float64)  # exact
    x, y = products[..., 0], products[..., 1]
    pair = x + y
    part = pair - x
    error = (x - (pair - part)) + (y - part)  # Knuth's two-sum
    return sums + to_odd(pair, np.where(np.isfinite(pair), error, 0.0)).astype(np.float32)


def _add_bytes(sums: Array, left: Array, right: Array) -> Array:
    """The sum of four products of signed and unsigned bytes, modulo 2^32."""
    return sums + (left.astype(np.int32) * right.astype(np.int32)).sum(-1, dtype=np.int32)


INSTRUCTIONS: Final[FunctionTable] = {
    "ppc.altivec.vmsumubm": _multiply_sum(np.uint8, np.uint8),
    "ppc.altivec.vmsummbm": _multiply_sum(np.int8, np.uint8),
    "ppc.altivec.vmsumuhm": _multiply_sum(np.uint16, np.uint16),
    "ppc.altivec.vmsumshm": _multiply_sum(np.int16, np.int16),
    "ppc.vsx.xvcvhpsp": type_independent(_from_half),
    "ppc.vsx.xvcvsphp": type_independent(_to_half),
    "ppc.vsx.assemble.pair": type_independent(_assembled),
    "ppc.mma.assemble.acc": type_independent(_assembled),
    "ppc.mma.disassemble.acc": type_independent(_disassembled),
    "ppc.mma.xxsetaccz": type_independent(lambda: np.zeros(128 * _ROWS, np.bool_)),
    "ppc.mma.xvf32gerpp": _outer_product(np.float32, np.float32, _add_products),
    "ppc.mma.xvf64gerpp": _outer_product(np.float64, np.float64, _add_products),
    "ppc.mma.xvbf16ger2pp": _outer_product(BFLOAT16, np.float32, _add_pairs),
    "ppc.mma.xvf16ger2pp": _outer_product(np.float16, np.float32, _add_pairs),
    "ppc.mma.xvi8ger4pp": _outer_product(np.int8, np.int32, _add_bytes),
}

SEMANTICS: Final = TargetSemantics(intrinsics=INSTRUCTIONS)
