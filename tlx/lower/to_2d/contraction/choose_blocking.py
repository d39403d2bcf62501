"""The choice of a blocking: all are tried, the one with the fewest estimated cycles is taken.

convolution of 64 x 56 x 56 with 64 x 64 x 3 x 3         loops   y                      (N)
                                                         sums    i, j                   (K)
                                                         2-D     o x c times c x x      (M, K, N)
                                                         copied  w, so that c is dense

The candidates: one dimension of each of M, N and K for the products, either operand copied or not, the result or its
transpose. What decides most is which blocks a 2-D load can read (one of two strides is 1), and that products are large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Final

from tlx.ir.types import PTR, bytes_of
from tlx.ir.values import Keyword
from tlx.lower.context import MOST_INTERLEAVED_SUMS
from tlx.lower.to_2d.contraction.blocking import MOST_CHAINED, Blocking, block_loaded_as
from tlx.lower.to_2d.contraction.cost import ComputeUnit, blocking_cycles
from tlx.lower.to_2d.contraction.problem import ACC, LEAVES, LHS, OUT, RHS, Contraction, OperandMemory, is_reduced
from tlx.lower.to_2d.contraction.vnni_packing import VnniRows, are_whole_registers, ragged_columns
from tlx.lower.to_2d.loops import INDEX_LIMIT, CollapsedDims, LoopDim, collapse_for_operands
from tlx.lower.to_2d.memory.copies import NEAR_BYTES

_ROWS: Final = 16
"""Rows that a part of an operand has a multiple of."""
_WORD: Final = 4
_NOWHERE: Final = Keyword(PTR, "null")


def choose_blocking(
    contraction: Contraction, unit: ComputeUnit, *, narrow: bool = False
) -> tuple[Blocking, float] | None:
    """The best choice, and an estimate of the cycles it takes; None where no blocks hold all that is reduced.

    Args:
        contraction: What to compute.
        unit: What multiplies.
        narrow: Whether the result is too narrow for sums to be kept in it.
    """
    shape = _anywhere(contraction)
    best = _best_blocking(shape, unit, narrow)
    if best is None:
        return None
    found, cost = best
    turned = contraction if found.contraction == shape else contraction.swapped()
    return replace(found, contraction=turned), cost


def _anywhere(c: Contraction) -> Contraction:
    """The contraction without the addresses of its operands, which do not matter to the choice."""
    lhs, rhs, out = (memory._replace(pointer=_NOWHERE) for memory in (c.lhs, c.rhs, c.out))
    return replace(c, lhs=lhs, rhs=rhs, out=out, acc=c.acc and OperandMemory(_NOWHERE, c.acc.element))


@lru_cache(maxsize=1024)
def _best_blocking(contraction: Contraction, unit: ComputeUnit, narrow: bool) -> tuple[Blocking, float] | None:
    """The best candidate, cached: programs repeat the same contractions."""
    best: tuple[float, Blocking] | None = None
    turns = filter(_has_reduced_columns, (contraction, contraction.swapped()))
    for turned, packed in product(turns, _packings()):
        for blocking in _choices(turned, packed, unit):
            if (narrow and contraction.acc is not None and blocking.sums > 1) or not _keeps_groups(blocking):
                continue
            if blocking.is_transposed and (narrow or unit.rows or blocking.sums > MOST_CHAINED):
                continue
            cost = blocking_cycles(blocking, unit)
            if best is None or cost < best[0]:
                best = cost, blocking
    return None if best is None else (best[1], best[0])


def _has_reduced_columns(c: Contraction) -> bool:
    """Whether what is reduced, if anything, are dimensions of the right operand, which can be columns of blocks."""
    return not any(map(is_reduced, (*c.batch, *c.m)))


def _keeps_groups(blocking: Blocking) -> bool:
    """Whether products read an operand of interleaved rows, if there is one, as it lies: whole, on the right."""
    c, n, k = blocking.contraction, blocking.n, blocking.k
    if c.lhs.vnni_group == c.rhs.vnni_group == 1:
        return True
    (_, rows), same_k = c.k[-1], len(k.dims) == 1
    return c.lhs.vnni_group == 1 and RHS not in blocking.copied and n.dims == c.n[-1:] and same_k and k.strides == rows


def _packings() -> Iterator[frozenset[int]]:
    yield from map(frozenset[int], ((), (LHS,), (RHS,), (LHS, RHS)))


def _quasi_affine_run(c: Contraction) -> tuple[CollapsedDims, ...]:
    """The quasi-affine dimension with its strides in the operands where it has them."""
    if c.quasi_affine is None:
        return ()
    strides = [steps.step * steps.stride for steps in (c.quasi_affine.lhs, c.quasi_affine.rhs)]
    return (CollapsedDims((LoopDim(c.quasi_affine.extent, (*strides, *[0] * (c.width - 2))),)),)


# Choices -------------------------------------------------------------------------------------------------------------


def _choices(c: Contraction, packed: frozenset[int], unit: ComputeUnit) -> Iterator[Blocking]:
    """The choices for which 2-D loads and stores exist, with some operands copied."""
    if not _can_pack(c, packed):
        return
    single, quasi_affine, reduces = CollapsedDims((LoopDim(1, (0,) * c.width),)), _quasi_affine_run(c), c.reduces
    first = next((column for column in (LHS, RHS) if column not in packed), LHS)
    batch, all_m, all_n = (collapse_for_operands(_sorted(walks, OUT), packed) for walks in (c.batch, c.m, c.n))
    apart = c.k[-1:] if c.rhs.vnni_group > 1 else ()  # its strides are those of groups
    all_k = [
        *collapse_for_operands(_sorted(c.k[: len(c.k) - len(apart)], first), packed),
        *(CollapsedDims((walk,)) for walk in apart),
    ]
    for m, k in product([*all_m, single], all_k or [single]):
        if LHS not in packed and block_loaded_as(LHS, m, k) is None:
            continue
        for n in [*all_n, single]:
            if (RHS in packed or block_loaded_as(RHS, k, n)) and _can_store(c, m, n, reduces=reduces):
                outer_m, outer_n, outer_k = (
                    tuple(run for run in runs if run is not inner)
                    for runs, inner in ((all_m, m), (all_n, n), (all_k, k))
                )
                if reduces and not all(run.strides[OUT] for run in outer_n):
                    continue
                whole = Blocking(c, packed, tuple(batch), outer_m, outer_n, outer_k, m, n, k, quasi_affine)
                for choice in (whole, *_split(whole, unit.lanes), *_in_tiles(whole, unit)):
                    yield choice
                    yield from _interleaved(choice, unit)
                    yield from _in_memory_order(choice, unit)


def _interleaved(choice: Blocking, unit: ComputeUnit) -> Iterator[Blocking]:
    """The choice with the right operand copied as a matrix unit reads it, where such a copy can be made."""
    c, m, n, k = choice.contraction, choice.m, choice.n, choice.k
    wanted = unit.width > 1 and RHS in choice.copied and c.kind == "matmul" and not c.reduces
    if not wanted or m.extent == 1 or n.extent == 1 or k.extent % unit.k_step or not k.strides[RHS]:
        return
    groups = VnniRows.of([dim.of(RHS) for dim in k.dims], unit.width)
    if groups is not None:
        columns = [dim.of(RHS) for dim in n.dims]
        tile_columns = unit.lanes if are_whole_registers(ragged_columns(columns, unit.lanes), unit.lanes) else 0
        yield replace(
            choice, groups=groups, padded_columns=-(-n.extent // unit.lanes) * unit.lanes, tile_columns=tile_columns
        )


def _in_memory_order(choice: Blocking, unit: ComputeUnit) -> Iterator[Blocking]:
    """The choice with a right operand copied in the order that K's dimensions have in memory, as one dimension.

    The products of a sum are then interleaved, position by position along one of K's dimensions, and read the copy
    sequentially: filters of 64 x (256 x 3 x 3) are copied as a matrix of 64 x 2304, which fills tiles of 16 x 16.
    """
    c = choice.contraction
    wide = bytes_of(c.rhs.element) >= _WORD  # what is narrow is packed for dot products once more
    if choice.copied != frozenset({RHS}) or not choice.outer_k or choice.n.extent == 1:
        return
    if unit.rows or not wide or c.quasi_affine is not None or c.reduces:
        return
    runs = [CollapsedDims((walk,)) for walk in _sorted(c.k, RHS)]
    if [walk for run in (*choice.outer_k, choice.k) for walk in run.dims] == [run.dims[0] for run in runs]:
        return  # a copy has that order anyway
    k = min(runs, key=lambda run: run.strides[LHS])
    others = [run for run in runs if run is not k]
    turns = math.prod(run.extent for run in others)
    if turns <= MOST_INTERLEAVED_SUMS and block_loaded_as(LHS, choice.m, k) is not None:
        yield replace(choice, k=k, outer_k=tuple(others), k_in_memory_order=True)


def _split(whole: Blocking, lanes: int) -> Iterator[Blocking]:
    """The candidate with the larger operand cut into slices that stay in the caches while the other one streams by.

    7 rows of 7 x 4608 times 4608 x 512 float        8 parts of 4608 x 64 times 7 rows each
    """
    if whole.contraction.reduces or whole.sums > MOST_CHAINED:
        return
    for column, run, granule in ((RHS, whole.n, 2 * lanes), (LHS, whole.m, _ROWS)):
        size = whole.block_bytes(column)
        if size <= NEAR_BYTES or len(run.dims) > 1 or not whole.is_reused(column):
            continue
        sizes = [s for s in range(granule, run.extent, granule) if run.extent % s == 0]
        near = [s for s in sizes if size * s // run.extent <= NEAR_BYTES]
        if near:
            extent, strides = run.extent, run.strides
            part = CollapsedDims((LoopDim(near[-1], strides),))
            parts = CollapsedDims((LoopDim(extent // near[-1], tuple(stride * near[-1] for stride in strides)),))
            if column == RHS:
                yield replace(whole, outer_n=(*whole.outer_n, parts), n=part)
            else:
                yield replace(whole, outer_m=(*whole.outer_m, parts), m=part)


def _in_tiles(whole: Blocking, unit: ComputeUnit) -> Iterator[Blocking]:
    """The choice with a copied left operand whose rows are those of a matrix unit's tiles, behind each other.

    9 sums of 128 channels, 64 bytes of bfloat a row      36 sums of 32

    A product alone stays one: the second stage packs its rows, or reads them as they lie.
    """
    k, step = whole.k, unit.k_step
    many = k.extent // step
    fits = unit.rows and whole.sums > 1 and len(k.dims) == 1 and k.extent % step == 0 and many > 1
    if fits and LHS in whole.copied and whole.sums * many <= MOST_CHAINED:
        parts = CollapsedDims((LoopDim(many, tuple(stride * step for stride in k.strides)),))
        yield replace(whole, outer_k=(*whole.outer_k, parts), k=CollapsedDims((LoopDim(step, k.strides),)))


def _can_pack(c: Contraction, packed: frozenset[int]) -> bool:
    """Whether the copied operands have plain strides."""
    quasi_affine = c.quasi_affine
    return quasi_affine is None or all((quasi_affine.lhs, quasi_affine.rhs)[column].period == 1 for column in packed)


def _sorted(walks: Sequence[LoopDim], column: int) -> list[LoopDim]:
    """Dimensions from the largest stride in an operand to the smallest."""
    return sorted((w for w in walks if w[0] > 1), key=lambda w: w[1][column], reverse=True)


def _can_store(c: Contraction, m: CollapsedDims, n: CollapsedDims, *, reduces: bool) -> bool:
    """Whether result, accumulator and leaves are row-major in a block; what is reduced, if anything, are columns."""
    if max((*m.strides[OUT:], *n.strides[OUT:])) >= INDEX_LIMIT:
        return False
    if n.extent == 1:
        return True
    if c.may_transpose and m.strides[OUT] == 1 and not reduces:
        return all(r <= 1 or d == 1 for d, r in zip(m.strides[LEAVES:], n.strides[LEAVES:], strict=True))
    is_dense = n.strides[OUT] == (0 if reduces else 1) and (c.acc is None or n.strides[ACC] == 1)
    return is_dense and all(stride <= 1 for stride in n.strides[LEAVES:])
