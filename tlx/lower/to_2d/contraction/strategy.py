"""The strategy of a contraction: its blocking, and where its result is reduced if a reduction follows.

The cycles of all candidate blockings are estimated; the one with the fewest wins. A candidate has one dimension of each
of M, N and K for the 2-D products, either operand copied or not, and computes the result or its transpose. What matters
most is which blocks a 2-D load can read (one of two strides is 1), and that products are large.

convolution of 64 x 56 x 56 with 64 x 64 x 3 x 3         loops   y                      (N)
                                                         sums    i, j                   (K)
                                                         2-D     o x c times c x x      (M, K, N)
                                                         copied  w, so that c is dense

A reduced result: the sums of the channels of a convolution, 1 x 64 x 54 x 54, have these strategies, of which the
cheapest is taken:

    reduced in each block     temporary         reduced from the temporary
    y and x                   none                           only if y and x are one dimension in the input
    x                         64 x 54           y
    y                         64 x 54           x
    nothing                   64 x 54 x 54      y and x

A block reduces its columns, which are then a whole dimension. The temporary has the contraction's dimensions in order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product
from typing import Final, NamedTuple

from tlx.diagnostics import size_text
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import Type, bytes_of
from tlx.lower.context import MOST_INTERLEAVED_SUMS
from tlx.lower.cost import ComputeUnit, sum_lanes
from tlx.lower.memory.views import NO_ADDRESS
from tlx.lower.to_2d.contraction.blocking import Blocking, block_loaded_as, blocking_cycles, max_chained_products
from tlx.lower.to_2d.contraction.depthwise import DepthwiseBlocking, choose_depthwise
from tlx.lower.to_2d.contraction.problem import (
    ACC,
    LEAVES,
    LHS,
    OUT,
    RHS,
    Contraction,
    OperandMemory,
    is_reduced,
    rounds_sums,
)
from tlx.lower.to_2d.contraction.vnni import (
    VnniRows,
    are_whole_registers,
    has_dense_vnni_rows,
    ragged_columns,
    with_vnni_rows,
    without_vnni_rows,
)
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loop_nests import INDEX_LIMIT, CollapsedDims, LoopDim, collapse_for_operands
from tlx.lower.to_2d.reductions import WindowAxis
from tlx.target.target import Target


def best_blocking(
    target: Target, contraction: Contraction, element: Type
) -> tuple[Blocking | DepthwiseBlocking, float]:
    """The blocking with the fewest estimated cycles, and the estimate.

    Args:
        target: The machine to choose for.
        contraction: What to compute.
        element: Type of the sums.

    Raises:
        ValueError: There is none, because a block cannot have all reduced elements in its columns.
    """
    blockings = _blockings(target, contraction, element)
    if not blockings:
        message = f"no 2-D product for {contraction}"
        raise ValueError(message)
    return min(blockings, key=lambda choice: choice[1])


def best_strategy(target: Target, contraction: Contraction, element: Type) -> ContractionStrategy:
    """The strategy with the fewest estimated cycles for a contraction whose result is reduced."""
    return min(_strategies(contraction), key=lambda strategy: _strategy_cycles(target, strategy, element))


def least_contraction_cycles(target: Target, contraction: Contraction, element: Type) -> float:
    """The estimated cycles of a contraction with sums of a type, under its best strategy."""
    strategies = _strategies(contraction) if contraction.reduces else [ContractionStrategy(contraction)]
    return min(_strategy_cycles(target, strategy, element) for strategy in strategies)


@dataclass(frozen=True)
class ContractionStrategy:
    """A way to reduce a contraction's result: in its blocks, from a temporary, or both.

    Attributes:
        contraction: The contraction, which writes the result or a temporary.
        axes: The axes of the reduction of the temporary to the result; empty if there is no temporary.
    """

    contraction: Contraction
    axes: tuple[WindowAxis, ...] = ()

    @property
    def writes_result(self) -> bool:
        """Whether blocks write the result, without a temporary."""
        return not self.axes

    @property
    def count(self) -> int:
        """Number of elements of the temporary."""
        return math.prod(axis.input_extent for axis in self.axes)

    def remark(self, context: EmitContext, op: TensorOp, element: Type) -> None:
        """Add a remark on the temporary.

        Args:
            context: Target, temporaries and remarks.
            op: The reduction.
            element: Element type of the temporary.
        """
        reason = "a block reduces only a part of it" if self.contraction.reduces else "that takes less time"
        size = size_text(self.count * bytes_of(element))
        message = f"temporary of {size} between the product and {op.intrinsic.name}, because {reason}"
        context.remark_missed(message, op.instruction.span)


# Strategies ----------------------------------------------------------------------------------------------------------


def _strategies(c: Contraction) -> Iterator[ContractionStrategy]:
    """All strategies, from the one that reduces everything in blocks to the one that reduces nothing there."""
    reduced = [index for index, dim in enumerate(_result_dims(c)) if is_reduced(dim)]
    yield ContractionStrategy(c)
    if len(reduced) > 1:
        yield from (_through_temporary(c, index) for index in reduced)
    yield _through_temporary(c, None)


def _result_dims(c: Contraction) -> list[LoopDim]:
    """The dimensions of the result."""
    return [*c.batch, *c.m, *c.n]


def _through_temporary(c: Contraction, inside: int | None) -> ContractionStrategy:
    """The strategy that reduces at most one dimension in blocks, and the others from a dense temporary."""
    dims, axes = _result_dims(c), list[WindowAxis]()
    stride = 1
    for index, (extent, strides) in reversed(list(enumerate(dims))):
        step = 0 if index == inside else stride
        dims[index] = LoopDim(extent, _with_out(strides, step, alone=c.acc is None))
        if index == inside:
            continue
        stride *= extent
        window = extent if is_reduced(LoopDim(extent, strides)) else 1
        axes.insert(0, WindowAxis(extent // window, step, strides[OUT], window))
    first, second = len(c.batch), len(c.batch) + len(c.m)
    batch, m, n = (tuple(dims[role]) for role in (slice(first), slice(first, second), slice(second, None)))
    return ContractionStrategy(replace(c, batch=batch, m=m, n=n), tuple(axes))


def _with_out(strides: tuple[int, ...], step: int, *, alone: bool) -> tuple[int, ...]:
    """The strides of a dimension with another stride in the result, and in the accumulator if there is none."""
    acc = step if alone else strides[ACC]
    return (*strides[LHS:OUT], step, acc, *strides[ACC + 1 :])


# Costs ---------------------------------------------------------------------------------------------------------------


def _blockings(
    target: Target, contraction: Contraction, element: Type
) -> list[tuple[Blocking | DepthwiseBlocking, float]]:
    """The best blocking of each kind; if one reads interleaved rows in place, it is the only one."""
    unit = compute_unit(target, contraction, element)
    grouped = with_vnni_rows(contraction, target) if contraction.rhs.vnni_group == 1 else contraction
    blocks = None if grouped is None else choose_blocking(grouped, unit, narrow=rounds_sums(element))
    if blocks is not None:
        return [blocks]
    if contraction.rhs.vnni_group > 1 and not has_dense_vnni_rows(contraction):
        return []
    contraction = without_vnni_rows(contraction)
    blocks = choose_blocking(contraction, unit, narrow=rounds_sums(element))
    depthwise = choose_depthwise(contraction, unit)
    return [choice for choice in (blocks, depthwise) if choice is not None]


def _strategy_cycles(target: Target, strategy: ContractionStrategy, element: Type) -> float:
    """The estimated cycles of a strategy; infinite if it has no blocking."""
    cycles = min((cycles for _, cycles in _blockings(target, strategy.contraction, element)), default=math.inf)
    if strategy.writes_result:
        return cycles
    costs = target.block_costs
    is_near = strategy.count * bytes_of(element) <= costs.cached_operand_bytes
    each = costs.reductions.vector_cycles if is_near else costs.reductions.cache_miss_vector_cycles
    results = math.prod(axis.extent for axis in strategy.axes)
    cycles += (
        costs.call_cycles
        + strategy.count / sum_lanes(target.vector_bytes, element) * each
        + results * costs.horizontal_reduction_cycles
    )
    return cycles if strategy.contraction.reduces else cycles * costs.unreduced_factor


def compute_unit(target: Target, contraction: Contraction, element: Type) -> ComputeUnit:
    """The unit that multiplies a contraction with sums of a type."""
    target = replace(target, matrix=None) if contraction.ignore_matrix_unit else target
    return ComputeUnit.of(target, contraction.lhs.element, contraction.rhs.element, element)


_WORD: Final = 4
_COPIES: Final = tuple(map(frozenset[int], ((), (LHS,), (RHS,), (LHS, RHS))))
"""The operands that a candidate may copy."""


def choose_blocking(
    contraction: Contraction, unit: ComputeUnit, *, narrow: bool = False
) -> tuple[Blocking, float] | None:
    """The best blocking and its estimated cycles; None if no block can have all reduced elements in its columns.

    Args:
        contraction: The contraction.
        unit: The unit that multiplies.
        narrow: Whether the result is too narrow for partial sums.
    """
    best = _best_blocking(_without_addresses(contraction), unit, narrow)
    if best is None:
        return None
    choice, blocking = best
    oriented = contraction.swapped() if choice.is_swapped else contraction
    return replace(blocking, contraction=oriented), choice.cycles


def _without_addresses(c: Contraction) -> Contraction:
    """The contraction without the addresses of its operands, on which the choice does not depend."""
    lhs, rhs, out = (memory._replace(pointer=NO_ADDRESS, is_constant=False) for memory in (c.lhs, c.rhs, c.out))
    return replace(c, lhs=lhs, rhs=rhs, out=out, acc=c.acc and OperandMemory(NO_ADDRESS, c.acc.element))


def _without_epilogue(c: Contraction) -> Contraction:
    """The contraction without those operands of its epilogue that any block can read.

    These are tensors with the result's strides, and vectors along the only dimension of M or N.
    """
    roles = [[strides for extent, strides in dims if extent > 1] for dims in (c.batch, c.m, c.n)]

    def restricts(leaf: int) -> bool:
        if all(strides[leaf] == strides[OUT] for role in roles for strides in role):
            return False
        read = [(strides[leaf], len(role)) for role in roles for strides in role if strides[leaf]]
        return bool(read) and read != [(1, 1)]

    columns = [*range(LEAVES), *filter(restricts, range(LEAVES, c.width))]

    def of_columns(dims: Sequence[LoopDim]) -> tuple[LoopDim, ...]:
        return tuple(LoopDim(n, tuple(strides[column] if n > 1 else 0 for column in columns)) for n, strides in dims)

    return replace(c, batch=of_columns(c.batch), m=of_columns(c.m), n=of_columns(c.n), k=of_columns(c.k))


class _Choice(NamedTuple):
    """One of the choices for a contraction, or for its transpose, by its place among them, and its cycles."""

    cycles: float
    is_swapped: bool
    copied: frozenset[int]
    place: int


@lru_cache(maxsize=1024)
def _best_blocking(contraction: Contraction, unit: ComputeUnit, narrow: bool) -> tuple[_Choice, Blocking] | None:
    """The best choice and its blocking, cached: programs repeat the same contractions."""
    best = _best_choice(_without_epilogue(contraction), unit, narrow)
    if best is None:
        return None
    oriented = contraction.swapped() if best.is_swapped else contraction
    return best, next(islice(_choices(oriented, best.copied, unit), best.place, None))


@lru_cache(maxsize=1024)
def _best_choice(contraction: Contraction, unit: ComputeUnit, narrow: bool) -> _Choice | None:
    """The choice with the fewest cycles, cached: estimates are made without epilogues, and with several."""
    best: _Choice | None = None
    orientations = [(False, contraction), (True, contraction.swapped())]
    for (is_swapped, oriented), copied in product(orientations, _COPIES):
        if not _has_reduced_columns(oriented):
            continue
        for place, blocking in enumerate(_choices(oriented, copied, unit)):
            if (narrow and contraction.acc is not None and blocking.sums > 1) or not _keeps_groups(blocking):
                continue
            if blocking.is_transposed and (narrow or unit.rows or blocking.sums > max_chained_products(blocking, unit)):
                continue
            cycles = blocking_cycles(blocking, unit, math.inf if best is None else best.cycles)
            if best is None or cycles < best.cycles:
                best = _Choice(cycles, is_swapped, copied, place)
    return best


def _has_reduced_columns(c: Contraction) -> bool:
    """Whether all reduced dimensions are those of the right operand, which can be columns of blocks."""
    return not any(map(is_reduced, (*c.batch, *c.m)))


def _keeps_groups(blocking: Blocking) -> bool:
    """Whether an operand with interleaved rows, if there is one, is read in place: whole, as the right operand."""
    c, n, k = blocking.contraction, blocking.n, blocking.k
    if c.lhs.vnni_group == c.rhs.vnni_group == 1:
        return True
    (_, rows), same_k = c.k[-1], len(k.dims) == 1
    return c.lhs.vnni_group == 1 and RHS not in blocking.copied and n.dims == c.n[-1:] and same_k and k.strides == rows


def _quasi_affine_run(c: Contraction) -> tuple[CollapsedDims, ...]:
    """The quasi-affine dimension with its strides in the operands."""
    if c.quasi_affine is None:
        return ()
    strides = [steps.step * steps.stride for steps in (c.quasi_affine.lhs, c.quasi_affine.rhs)]
    return (CollapsedDims((LoopDim(c.quasi_affine.extent, (*strides, *[0] * (c.width - 2))),)),)


# Choices -------------------------------------------------------------------------------------------------------------


def _choices(c: Contraction, copied: frozenset[int], unit: ComputeUnit) -> Iterator[Blocking]:
    """The blockings for which 2-D loads and stores exist, with some operands copied.

    Of equal ones, the first is taken: on vectors, the one whose rows are nearest in memory. Images of 64x64, channels
    last, have as many rows of pixels as pixels in a row; each pixel of a column is on another page. Tiles of a matrix
    unit are no faster with near rows: 51 convolutions of bfloat take 3 % more time as geometric mean (Xeon with AMX).
    """
    if not _can_copy(c, copied):
        return
    single, quasi_affine, reduces = CollapsedDims((LoopDim(1, (0,) * c.width),)), _quasi_affine_run(c), c.reduces
    first = next((column for column in (LHS, RHS) if column not in copied), LHS)
    batch, all_m, all_n = (collapse_for_operands(_sorted(dims, OUT), copied) for dims in (c.batch, c.m, c.n))
    grouped = c.k[-1:] if c.rhs.vnni_group > 1 else ()  # its strides count groups
    all_k = [
        *collapse_for_operands(_sorted(c.k[: len(c.k) - len(grouped)], first), copied),
        *(CollapsedDims((dim,)) for dim in grouped),
    ]
    rows = all_m if unit.rows else all_m[::-1]
    for m, k in product([*rows, single], all_k or [single]):
        if LHS not in copied and block_loaded_as(LHS, m, k) is None:
            continue
        for n in [*all_n, single]:
            if (RHS in copied or block_loaded_as(RHS, k, n)) and _can_store(c, m, n, reduces=reduces):
                outer_m, outer_n, outer_k = (
                    tuple(run for run in runs if run is not inner)
                    for runs, inner in ((all_m, m), (all_n, n), (all_k, k))
                )
                if reduces and not all(run.strides[OUT] for run in outer_n):
                    continue
                whole = Blocking(c, copied, tuple(batch), outer_m, outer_n, outer_k, m, n, k, quasi_affine)
                for choice in (whole, *_split(whole, unit), *_in_tiles(whole, unit)):
                    yield choice
                    yield from _interleaved(choice, unit)
                    yield from _in_memory_order(choice, unit)


def _interleaved(choice: Blocking, unit: ComputeUnit) -> Iterator[Blocking]:
    """The blocking with the right operand copied with interleaved rows for a matrix unit, if that is possible."""
    c, m, n, k = choice.contraction, choice.m, choice.n, choice.k
    may_interleave = unit.width > 1 and RHS in choice.copied and c.kind == "matmul" and not c.reduces
    if not may_interleave or m.extent == 1 or n.extent == 1 or k.extent % unit.k_step or not k.strides[RHS]:
        return
    groups = VnniRows.of([dim.of(RHS) for dim in k.dims], unit.width)
    if groups is not None:
        columns = [dim.of(RHS) for dim in n.dims]
        tile_columns = unit.lanes if are_whole_registers(ragged_columns(columns, unit.lanes), unit.lanes) else 0
        yield replace(
            choice, groups=groups, padded_columns=-(-n.extent // unit.lanes) * unit.lanes, tile_columns=tile_columns
        )


def _in_memory_order(choice: Blocking, unit: ComputeUnit) -> Iterator[Blocking]:
    """The blocking with a right operand whose copy keeps K's dimensions in memory order, as one dimension.

    The products of a sum are then interleaved, position by position along one of K's dimensions, and read the copy
    sequentially: filters of 64 x (256 x 3 x 3) are copied as a matrix of 64 x 2304, which fills tiles of 16 x 16.
    """
    c = choice.contraction
    wide = bytes_of(c.rhs.element) >= _WORD  # narrow elements are packed again for dot products
    if choice.copied != frozenset({RHS}) or not choice.outer_k or choice.n.extent == 1:
        return
    if unit.rows or not wide or c.quasi_affine is not None or c.reduces:
        return
    runs = [CollapsedDims((dim,)) for dim in _sorted(c.k, RHS)]
    if [dim for run in (*choice.outer_k, choice.k) for dim in run.dims] == [run.dims[0] for run in runs]:
        return  # any copy has this order
    k = min(runs, key=lambda run: run.strides[LHS])
    others = [run for run in runs if run is not k]
    sums = math.prod(run.extent for run in others)
    if sums <= MOST_INTERLEAVED_SUMS and block_loaded_as(LHS, choice.m, k) is not None:
        yield replace(choice, k=k, outer_k=tuple(others), k_in_memory_order=True)


def _split(whole: Blocking, unit: ComputeUnit) -> Iterator[Blocking]:
    """The blocking with the larger operand cut into slices that stay in the caches while the other one is streamed.

    7 rows of 7 x 4608 times 4608 x 512 float        8 slices of 4608 x 64 times 7 rows each
    """
    if whole.contraction.reduces:
        return
    for column, run, granule in ((RHS, whole.n, 2 * unit.lanes), (LHS, whole.m, unit.costs.slice_row_multiple)):
        size = whole.block_bytes(column)
        if size <= unit.costs.cached_operand_bytes or len(run.dims) > 1 or not whole.is_reused(column):
            continue
        if whole.sums > max_chained_products(whole, unit):
            return
        sizes = [s for s in range(granule, run.extent, granule) if run.extent % s == 0]
        near = [s for s in sizes if size * s // run.extent <= unit.costs.cached_operand_bytes]
        if near:
            extent, strides = run.extent, run.strides
            inner = CollapsedDims((LoopDim(near[-1], strides),))
            slices = CollapsedDims((LoopDim(extent // near[-1], tuple(stride * near[-1] for stride in strides)),))
            if column == RHS:
                yield replace(whole, outer_n=(*whole.outer_n, slices), n=inner)
            else:
                yield replace(whole, outer_m=(*whole.outer_m, slices), m=inner)


def _in_tiles(whole: Blocking, unit: ComputeUnit) -> Iterator[Blocking]:
    """The blocking whose copied left operand has the rows of a matrix unit's tiles contiguous in memory.

    9 sums of 128 channels, 64 bytes of bfloat a row      36 sums of 32

    A single product is not split: stage 2 packs its rows, or reads them in place.
    """
    k, step = whole.k, unit.k_step
    count = k.extent // step
    if LHS in whole.copied and unit.rows and whole.sums > 1 and len(k.dims) == 1 and k.extent % step == 0 and count > 1:
        tiles = CollapsedDims((LoopDim(count, tuple(stride * step for stride in k.strides)),))
        split = replace(whole, outer_k=(*whole.outer_k, tiles), k=CollapsedDims((LoopDim(step, k.strides),)))
        if split.sums <= max_chained_products(split, unit):
            yield split


def _can_copy(c: Contraction, copied: frozenset[int]) -> bool:
    """Whether the copied operands have affine strides."""
    quasi_affine = c.quasi_affine
    return quasi_affine is None or all((quasi_affine.lhs, quasi_affine.rhs)[column].period == 1 for column in copied)


def _sorted(dims: Sequence[LoopDim], column: int) -> list[LoopDim]:
    """Dimensions from the largest stride in an operand to the smallest."""
    return sorted((dim for dim in dims if dim.extent > 1), key=lambda dim: dim.strides[column], reverse=True)


def _can_store(c: Contraction, m: CollapsedDims, n: CollapsedDims, *, reduces: bool) -> bool:
    """Whether result, accumulator and the epilogue's operands are row-major in a block, and columns are reduced."""
    if max((*m.strides[OUT:], *n.strides[OUT:])) >= INDEX_LIMIT:
        return False
    if n.extent == 1:
        return True
    if c.may_transpose and m.strides[OUT] == 1 and not reduces:
        return all(r <= 1 or d == 1 for d, r in zip(m.strides[LEAVES:], n.strides[LEAVES:], strict=True))
    is_dense = n.strides[OUT] == (0 if reduces else 1) and (c.acc is None or n.strides[ACC] == 1)
    return is_dense and all(stride <= 1 for stride in n.strides[LEAVES:])
