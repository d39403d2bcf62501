"""The meaning of Arm's instructions in numpy: products of Advanced SIMD, SVE and SME.

Source: Arm Architecture Reference Manual for A-profile, C7.2, C8.2 and C9.2 (SDOT, BFDOT, SMMLA, BFMMLA, FMOPA, ...)
and the functions BFDotAdd, BFMatMulAdd, BFRound and FPDotAdd_ZA of its shared pseudocode, with FPCR.EBF = 0.

A matrix product adds, in each 16 bytes of its registers, rows of 8 bytes of A times those of the transposed B:

    A 2 x q      B' 2 x q      acc 2 x 2      q = 4 bfloat or 8 bytes

A scalable vector is an array of all its elements, as a vector of that length is. One that repeats 16 bytes is an array
of these, which numpy repeats as well. A tile of ZA has the length of the vectors that are added to it; before, it is
zero or not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.context import (
    CallSite,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    MachineContext,
    TargetSemantics,
    type_independent,
)
from tlx.evaluate.values import BFLOAT16, DType, to_odd
from tlx.intrinsics.numpy_types import Array

_Kind = DType | type[Any]
_TILE_ROW: Final = 8  # bytes of a row of an operand
_QUADWORD: Final = 16
_SMALLEST_NORMAL: Final = 2.0**-126
_OVERFLOW: Final = 2.0**128


def _integer_dot(lhs: _Kind, rhs: _Kind) -> ImplementationFactory:
    """SDOT, UDOT, USDOT: each 32-bit lane of acc plus the products of the 4 bytes in that lane."""

    def run(acc: Array, a: Array, b: Array) -> Array:
        products = a.view(lhs).astype(np.int64) * b.view(rhs).astype(np.int64)
        return acc + products.reshape(-1, 4).sum(1).astype(np.uint32)

    return type_independent(run)


def _integer_matrix(lhs: _Kind, rhs: _Kind) -> ImplementationFactory:
    """SMMLA, UMMLA, USMMLA: acc + A @ B in each 16 bytes."""

    def run(acc: Array, a: Array, b: Array) -> Array:
        left = a.view(lhs).astype(np.int64).reshape(-1, 2, _TILE_ROW)
        right = b.view(rhs).astype(np.int64).reshape(-1, 2, _TILE_ROW)
        return acc + (left @ right.transpose(0, 2, 1)).reshape(-1).astype(np.uint32)

    return type_independent(run)


def _bfloat_dot(acc: Array, a: Array, b: Array) -> Array:
    """BFDOT: acc + (a0 b0 + a1 b1) in each 32-bit lane."""
    left, right = (_flushed(operand.view(BFLOAT16).astype(np.float64)).reshape(-1, 2) for operand in (a, b))
    return _dot_add(acc, left, right)


def _bfloat_matrix(acc: Array, a: Array, b: Array) -> Array:
    """BFMMLA: each sum takes the products of K = 0 and 1, then those of K = 2 and 3."""
    left, right = (_flushed(operand.view(BFLOAT16).astype(np.float64)).reshape(-1, 2, 4) for operand in (a, b))
    sums = acc.reshape(-1, 2, 2)
    for k in (0, 2):
        pairs = left[:, :, None, k : k + 2], right[:, None, :, k : k + 2]
        sums = _dot_add(sums, *pairs)
    return sums.reshape(-1)


def _dot_add(acc: Array, left: Array, right: Array) -> Array:
    """BFDotAdd: the sum of two products, added to acc; each operation rounds to odd and flushes."""
    products = _rounded_to_odd(left * right, np.zeros(()))  # exact in double
    pair = _added(products[..., 0], products[..., 1])
    return _added(_flushed(acc.astype(np.float64)), pair.astype(np.float64)).astype(np.float32)


def _added(x: Array, y: Array) -> Array:
    """FPAdd_BF16 on numbers of float precision in double."""
    return _rounded_to_odd(*_exact_sum(x, y))


def _exact_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """A sum in double, and what it lacks: Knuth's two-sum."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    return total, np.where(np.isfinite(total), error, 0.0)


def _float_sum(x: Array, y: Array) -> Array:
    """A sum of numbers in double, rounded once, to float."""
    return to_odd(*_exact_sum(x, y)).astype(np.float32)


def _rounded_to_odd(number: Array, error: Array) -> Array:
    """BFRound: `number + error` in float precision, inexact results with a last bit of one.

    Results below the smallest normal number are zero, those beyond the largest number infinity.
    """
    single = number.astype(np.float32)
    odd = to_odd(single, np.where(np.isfinite(number), number - single + error, 0.0)).astype(np.float64)
    overflows = np.abs(number) - _OVERFLOW + np.sign(number) * error >= 0
    return _flushed(np.where(overflows, np.copysign(np.inf, number), odd))


def _flushed(numbers: Array) -> Array:
    """Numbers with those below the smallest normal float as zeros of their sign."""
    return np.where(np.abs(numbers) < _SMALLEST_NORMAL, np.copysign(0.0, numbers), numbers)


_BYTES: Final = {"s": (np.int8, np.int8), "u": (np.uint8, np.uint8), "us": (np.uint8, np.int8)}


def _products(prefix: str) -> FunctionTable:
    """The products of Advanced SIMD or SVE."""
    return {
        **{f"{prefix}.{signs}dot": _integer_dot(*kinds) for signs, kinds in _BYTES.items()},
        **{f"{prefix}.{signs}mmla": _integer_matrix(*kinds) for signs, kinds in _BYTES.items()},
        f"{prefix}.bfdot": type_independent(_bfloat_dot),
        f"{prefix}.bfmmla": type_independent(_bfloat_matrix),
    }


def _repeated(part: Array, lane: int) -> Array:
    """DUP of a quadword; see above."""
    count = _QUADWORD // part.itemsize
    return part[lane * count : (lane + 1) * count].copy()


# Tiles of ZA ---------------------------------------------------------------------------------------------------------

_WORD_TILES: Final = 4
_ZA: Final[WeakKeyDictionary[MachineContext, list[Array | None]]] = WeakKeyDictionary()
"""Tiles of 32-bit sums as bits: one zero for a tile of zeros of any size, None for one that nothing is known of."""


def _tiles(site: CallSite) -> list[Array | None]:
    """The tiles of the machine that a call runs on."""
    return _ZA.setdefault(site.context, [None] * _WORD_TILES)


def _tile(tiles: list[Array | None], number: int, words: int) -> Array:
    """The bits of a tile.

    Raises:
        EvaluationError: Nothing is known of them.
    """
    tile = tiles[number]
    if tile is None:
        raise EvaluationError(f"tile {number} of ZA is read before it is written")
    if tile.size == 1:
        tile = tiles[number] = np.zeros((words, words), np.uint32)
    return tile


def _zero(site: CallSite) -> Implementation:
    """ZERO, of whole tiles of words."""
    tiles = _tiles(site)

    def run(mask: int) -> None:
        for number in range(_WORD_TILES):
            if mask >> number & 1:
                tiles[number] = np.zeros((1, 1), np.uint32)

    return run


def _outer_product(product: Callable[[Array, Array, Array], Array]) -> ImplementationFactory:
    """FMOPA and others, of whole registers: sums, words of a column of A, words of a row of B."""

    def factory(site: CallSite) -> Implementation:
        tiles = _tiles(site)

        def run(number: int, _rows: Array, _columns: Array, lhs: Array, rhs: Array) -> None:
            words = lhs.nbytes // 4
            left, right = (operand.reshape(words, -1) for operand in (lhs, rhs))
            sums = product(_tile(tiles, number, words), left[:, None, :], right[None, :, :])
            tiles[number] = sums.view(np.uint32)

        return run

    return factory


def _float_outer(sums: Array, left: Array, right: Array) -> Array:
    """FMOPA: a fused multiply-add."""
    product = left[..., 0].astype(np.float64) * right[..., 0].astype(np.float64)
    return _float_sum(product, sums.view(np.float32).astype(np.float64))


def _half_outer(sums: Array, left: Array, right: Array) -> Array:
    """FMOPA (widening), FPDotAdd_ZA: the rounded sum of two products is added."""
    products = left.astype(np.float64) * right.astype(np.float64)
    return sums.view(np.float32) + _float_sum(products[..., 0], products[..., 1])


def _bfloat_outer(sums: Array, left: Array, right: Array) -> Array:
    """BFMOPA."""
    operands = (_flushed(operand.astype(np.float64)) for operand in (left, right))
    return _dot_add(sums.view(np.float32), *operands)


def _byte_outer(lhs: _Kind, rhs: _Kind) -> ImplementationFactory:
    """SMOPA, UMOPA, USMOPA, SUMOPA."""

    def product(sums: Array, left: Array, right: Array) -> Array:
        products = left.view(lhs).astype(np.int64) * right.view(rhs).astype(np.int64)
        return sums + products.sum(-1).astype(np.uint32)

    return _outer_product(product)


def _load_slice(site: CallSite) -> Implementation:
    """LD1W of a row of a tile."""
    tiles, memory = _tiles(site), site.context.memory

    def run(predicate: Array, address: int, number: int, row: int) -> None:
        words = predicate.size
        if tiles[number] is None:
            tiles[number] = np.zeros((words, words), np.uint32)
        data = memory.read(address, 4 * words, f"load of row {row} of tile {number}")
        _tile(tiles, number, words)[row] = np.frombuffer(data, np.uint32)

    return run


def _store_slice(site: CallSite) -> Implementation:
    """ST1W of a row of a tile."""
    tiles, memory = _tiles(site), site.context.memory

    def run(predicate: Array, address: int, number: int, row: int) -> None:
        data = _tile(tiles, number, predicate.size)[row].tobytes()
        memory.write(address, data, f"store of row {row} of tile {number}")

    return run


_COUNTS: Final = {4: 4, 8: 8, 9: 16, 10: 32, 11: 64}
"""Elements of PTRUE's patterns VL4, VL8, ..., VL64; kernels name the whole length of a register."""


def _all_of(pattern: int) -> Array:
    """PTRUE."""
    return np.ones(_COUNTS[pattern], np.bool_)


_SME: Final[FunctionTable] = {
    "aarch64.sve.ptrue": type_independent(_all_of),
    "aarch64.sme.zero": _zero,
    "aarch64.sme.ld1w.horiz": _load_slice,
    "aarch64.sme.st1w.horiz": _store_slice,
    "aarch64.sme.mopa.nxv4f32": _outer_product(_float_outer),
    "aarch64.sme.mopa.wide.nxv8f16": _outer_product(_half_outer),
    "aarch64.sme.mopa.wide.nxv8bf16": _outer_product(_bfloat_outer),
    "aarch64.sme.smopa.wide": _byte_outer(np.int8, np.int8),
    "aarch64.sme.umopa.wide": _byte_outer(np.uint8, np.uint8),
    "aarch64.sme.usmopa.wide": _byte_outer(np.uint8, np.int8),
    "aarch64.sme.sumopa.wide": _byte_outer(np.int8, np.uint8),
}

SEMANTICS: Final = TargetSemantics(
    intrinsics={
        **_SME,
        **_products("aarch64.neon"),
        **_products("aarch64.sve"),
        "aarch64.sve.dupq.lane": type_independent(_repeated),
    }
)
