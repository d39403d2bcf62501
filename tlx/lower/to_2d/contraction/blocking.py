"""Blockings: which dimensions become the matrices of 2-D products, which become loops, and what that costs.

`blocking_cycles` prices products, transfers and packing by `tlx.lower.cost`, as stage 2 does. Its own are the prices of
transposed stores and of a left operand that is read column by column: the shared ones choose slower kernels, see
`BlockCosts.store` and `BlockCosts.line`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from tlx.ir.types import bytes_of
from tlx.lower.cost import ComputeUnit, randomized_cycles
from tlx.lower.memory.views import StridedDim, load_layout
from tlx.lower.to_2d.contraction.problem import LHS, OUT, RHS, Contraction
from tlx.lower.to_2d.contraction.vnni import VnniRows
from tlx.lower.to_2d.loop_nests import CollapsedDims
from tlx.lower.to_2d.memory.copies import copy_cycles

_MOST_CHAINED: Final = 64
_MOST_CHAINED_IN_TILES: Final = 256


class OperandWalk(NamedTuple):
    """An operand's dimensions in the order of a copy, its number of elements, and their span in memory."""

    dims: list[tuple[int, int]]
    elements: int
    span: int

    @classmethod
    def of(cls, runs: Sequence[CollapsedDims], column: int) -> OperandWalk:
        """The walk over dimensions, the outermost one first, with an operand's strides."""
        dims = [(extent, strides[column]) for run in runs for extent, strides in run.dims]
        span = 1 + sum((extent - 1) * stride for extent, stride in dims)
        return cls(dims, math.prod(extent for extent, _ in dims), span)


@dataclass(frozen=True, eq=False)
class Blocking:
    """A blocking of a contraction.

    Attributes:
        contraction: The contraction or its transpose.
        copied: The operands that are copied: LHS, RHS.
        batch, outer_m, outer_n: Loops around the blocks of the result.
        outer_k: Loops around the products that are summed in a block.
        m, n, k: The dimensions of the products.
        quasi_affine: The loop over the quasi-affine dimension, if the contraction has one.
        groups: How rows of a copied right operand are interleaved for a matrix unit; None: they are not.
        padded_columns: Columns of a row of the interleaved copy, padded to whole tiles.
        tile_columns: Columns of a tile if the interleaved copy is stored tile by tile, else 0.
        k_in_memory_order: Whether the copied right operand keeps the order that K's dimensions have in memory.
    """

    contraction: Contraction
    copied: frozenset[int]
    batch: tuple[CollapsedDims, ...]
    outer_m: tuple[CollapsedDims, ...]
    outer_n: tuple[CollapsedDims, ...]
    outer_k: tuple[CollapsedDims, ...]
    m: CollapsedDims
    n: CollapsedDims
    k: CollapsedDims
    quasi_affine: tuple[CollapsedDims, ...] = ()
    groups: VnniRows | None = None
    padded_columns: int = 0
    tile_columns: int = 0
    k_in_memory_order: bool = False

    def order(self, column: int) -> list[CollapsedDims]:
        """An operand's dimensions in the order in which they are read and copied."""
        if column == LHS:
            runs = [*self.batch, *self.outer_m, *self.quasi_affine, *self.outer_k, self.m, self.k]
        else:
            depth = [*self.quasi_affine, *self.outer_k, self.k]
            if self.k_in_memory_order:
                depth.sort(key=lambda run: run.strides[column], reverse=True)
            runs = [*self.batch, *self.outer_n, *depth, self.n]
        return [run for run in runs if run.strides[column] and run.extent > 1]

    @cached_property
    def walks(self) -> tuple[OperandWalk, OperandWalk]:
        """How the operands are read and copied."""
        return OperandWalk.of(self.order(LHS), LHS), OperandWalk.of(self.order(RHS), RHS)

    @cached_property
    def loops(self) -> list[CollapsedDims]:
        """The loops around blocks: those that step through the larger operand are the outer ones.

        The block of the larger operand then stays in the cache while the other operand is read. Where blocks have the
        same size, the operand that is larger as a whole is read once, and the smaller one repeatedly.
        """
        larger = max((LHS, RHS), key=lambda column: (self.block_bytes(column), self._read_bytes(column)))
        inner = [run for run in (*self.outer_m, *self.outer_n) if not run.strides[larger]]
        outer = [run for run in (*self.outer_m, *self.outer_n) if run.strides[larger]]
        return [*self.batch, *outer, *inner]

    def _read_bytes(self, column: int) -> int:
        """Bytes of an operand that all blocks of the result read."""
        loops = (*self.batch, *self.outer_m, *self.outer_n)
        return self.block_bytes(column) * math.prod(run.extent for run in loops if run.strides[column])

    def sliced_operand(self, cache_bytes: int) -> int | None:
        """The operand that is copied slice by slice, so that the copy stays in so many bytes of cache, or None."""
        larger = max((LHS, RHS), key=self.block_bytes)
        moving = [run for run in (*self.batch, *self.outer_m, *self.outer_n) if run.strides[larger]]
        if larger not in self.copied or self.groups is not None or any(len(run.dims) > 1 for run in moving):
            return None
        size = self.block_bytes(larger)
        return larger if size <= cache_bytes < size * math.prod(run.extent for run in moving) else None

    @property
    def is_transposed(self) -> bool:
        """Whether the result of a product is stored column by column."""
        return self.n.extent > 1 and self.n.strides[OUT] > 1

    @cached_property
    def sums(self) -> int:
        """Number of products that are summed in each block."""
        return math.prod(run.extent for run in (*self.outer_k, *self.quasi_affine))

    @cached_property
    def blocks(self) -> int:
        """Number of blocks of the result."""
        return math.prod(run.extent for run in (*self.batch, *self.outer_m, *self.outer_n))

    @property
    def group(self) -> int:
        """How many rows of the right operand are interleaved in memory."""
        return self.contraction.rhs.vnni_group if self.groups is None else self.groups.width

    @property
    def packings(self) -> float:
        """How often a block of the right operand is packed for each block of the result, as several may share it."""
        return 1 / math.prod(run.extent for run in self.loops if not run.strides[RHS])

    def is_reused(self, column: int) -> bool:
        """Whether a block of an operand is used for several blocks of the result."""
        loops = (*self.batch, *self.outer_m, *self.outer_n)
        return any(run.extent > 1 and not run.strides[column] for run in loops)

    def block_bytes(self, column: int) -> int:
        """Bytes of an operand that a block of the result reads."""
        return self._block_sizes[column]

    @cached_property
    def _block_sizes(self) -> tuple[int, int]:
        depth, lhs, rhs = self.sums * self.k.extent, self.contraction.lhs.element, self.contraction.rhs.element
        return depth * self.m.extent * bytes_of(lhs), depth * self.n.extent * bytes_of(rhs)


def block_loaded_as(column: int, rows: CollapsedDims, cols: CollapsedDims) -> tuple[bool, int] | None:
    """The layout in which an operand's block is loaded (`load_layout`); None if no 2-D load reads it."""
    return load_layout(StridedDim(rows.extent, rows.strides[column]), StridedDim(cols.extent, cols.strides[column]))


_WORD: Final = 4
_PANEL_SHARE: Final = 8
"""Of registers, those of a row of sums in most register tiles: 2 of 16 (6 rows), 4 of 32 (6 rows)."""


def max_chained_products(blocking: Blocking, unit: ComputeUnit) -> int:
    """The largest number of products that are summed in one tree.

    A matrix unit's sums stay in its tiles. On vectors one product at a time prefetches the operands of the next: 128
    blocks of 32x32x32, bfloat on AVX-512, then take three quarters of the time.
    """
    return _max_chained(unit_of_blocks(blocking, unit))


def _max_chained(unit: ComputeUnit) -> int:
    """The same for the unit that multiplies the blocks."""
    return _MOST_CHAINED_IN_TILES if unit.rows else _MOST_CHAINED


def unit_of_blocks(blocking: Blocking, unit: ComputeUnit) -> ComputeUnit:
    """The unit that multiplies the blocks in fewer cycles: a matrix unit, or the vector unit beside it."""
    if not unit.rows:
        return unit
    return unit.for_product(blocking.m.extent, blocking.n.extent, blocking.k.extent, blocking.group, blocking.packings)


def blocking_cycles(blocking: Blocking, unit: ComputeUnit, limit: float = math.inf) -> float:
    """Approximate cycles of a contraction by this blocking; infinite if that is known early to be the limit or more.

    All of a block is estimated for the unit that multiplies it.
    """
    limit = limit if unit.costs.decision_seed is None else math.inf
    whole, unit = unit, unit_of_blocks(blocking, unit)
    rows, columns, depth, costs = blocking.m.extent, blocking.n.extent, blocking.k.extent, unit.costs
    vectors = -(-columns // unit.lanes)
    terms, products = (blocking.sums, 1) if blocking.sums <= _max_chained(unit) else (1, blocking.sums)
    between = costs.term_cycles
    if not unit.rows and not blocking.k_in_memory_order:
        between += costs.term_register_cycles * rows * vectors
    cycles = costs.call_cycles + terms * (
        between + unit.cycles(rows, columns, depth, blocking.group, blocking.packings if unit.rows else 1)
    )
    if blocking.blocks * products * cycles >= limit:
        return math.inf
    timing = unit.matrix_costs
    if timing is not None and _crosses_lines(blocking, unit):
        cycles += (
            terms * vectors * -(-rows // (2 * unit.rows)) * (depth / unit.k_step) * timing.line_crossing_load_cycles
        )
    if timing is not None and not _has_adjacent_rows(blocking, unit):
        cycles += (
            terms * -(-rows // unit.rows) * -(-vectors // 2) * (depth / unit.k_step) * timing.scattered_load_cycles
        )
    store = costs.transposed_store_cycles if blocking.is_transposed else costs.store_cycles
    stored = (store + _set_conflict_store_cycles(blocking, unit)) * rows * vectors
    cycles += _reduced_cycles(blocking, vectors, unit) if blocking.contraction.reduces else stored
    lhs = None if LHS in blocking.copied else block_loaded_as(LHS, blocking.m, blocking.k)
    if lhs is not None and not lhs[0]:
        packed = costs.copies.transposed_element_cycles
        each = packed if unit.rows else min(costs.strided_lhs_cycles * vectors, packed)
        cycles += terms * depth * rows * each
    rhs = None if RHS in blocking.copied else block_loaded_as(RHS, blocking.k, blocking.n)
    if rhs is not None and not rhs[0]:
        cycles += terms * depth * blocking.n.extent * costs.copies.transposed_element_cycles
    if rhs is not None and rhs[0] and not unit.rows and _set_conflict_factor(blocking, RHS, unit) > 1:
        cycles += costs.set_conflict_product_cycles * terms * depth * rows * vectors
    copies = sum(_copy_cost(blocking, column, whole) for column in blocking.copied)
    if blocking.blocks * products * cycles + copies >= limit:
        return math.inf
    cycles += sum(_cache_miss_cycles(blocking, column, unit) for column in (LHS, RHS)) / products
    multiplied = blocking.blocks * products * cycles
    in_rows = lhs is not None and lhs[0] and not unit.rows
    cycles = multiplied + _memory_cycles(blocking, multiplied if in_rows else 0, unit) + copies
    return randomized_cycles(costs.decision_seed, cycles, blocking)


def _has_adjacent_rows(blocking: Blocking, unit: ComputeUnit) -> bool:
    """Whether the rows of a matrix unit's tile of the left operand, or of its copy, are adjacent in memory."""
    depth, rows = blocking.k.extent, blocking.m
    return depth <= unit.k_step and (LHS in blocking.copied or rows.strides[LHS] == depth)


def narrow_packing_cycles(blocking: Blocking, unit: ComputeUnit) -> float:
    """Approximate cycles to pack narrow operands, where vectors multiply them.

    The right one is packed in groups of 32 bits, once where blocks share it; the left one's bytes are copied to flip
    their signs.
    """
    lhs, rhs = blocking.contraction.lhs, blocking.contraction.rhs
    rows, columns, depth = blocking.m.extent, blocking.n.extent, blocking.k.extent
    unit = unit_of_blocks(blocking, unit)
    if blocking.group > 1 or unit.rows:
        return 0
    registers = depth * bytes_of(rhs.element) / _WORD * -(-columns // unit.lanes) * blocking.packings
    if bytes_of(lhs.element) == 1:
        registers += rows * -(-depth // unit.costs.register_bytes)
    cycles = blocking.blocks * blocking.sums * registers * unit.target.core.costs.packing.register_cycles
    return randomized_cycles(unit.costs.decision_seed, cycles, "packing", blocking)


def _crosses_lines(blocking: Blocking, unit: ComputeUnit) -> bool:
    """Whether a matrix unit's tiles of interleaved rows cross cache lines, as those of overlapping windows do."""
    rhs = blocking.contraction.rhs
    if rhs.vnni_group == 1:
        return False
    steps = [
        run.strides[RHS] * rhs.vnni_group * bytes_of(rhs.element) for run in (*blocking.outer_k, *blocking.quasi_affine)
    ]
    return any(step % unit.target.caches.line_bytes for step in steps)


def _memory_cycles(blocking: Blocking, overlapped: float, unit: ComputeUnit) -> float:
    """Approximate cycles to read operands, or their copies, that exceed the caches near the core.

    The left one is read once for each slice of the right one that fits there. The right one is prefetched where all of
    it fits into the second-level cache. A copy is evicted before it is read, so each of its bytes moves twice.

    Args:
        blocking: The blocking.
        overlapped: Cycles of other work that hide reading the left one, whose rows the core prefetches.
        unit: The unit that multiplies.
    """
    lhs, rhs = (_operand_bytes(blocking, column) for column in (LHS, RHS))
    near, memory = unit.costs.cached_operand_bytes, unit.target.memory
    read_lhs, read_rhs = ((1 + (column in blocking.copied)) / memory.bytes_per_cycle for column in (LHS, RHS))
    slices = -(-rhs // near)
    again = rhs if slices > 1 and blocking.sliced_operand(near) != RHS else 0
    far = read_lhs * (lhs * slices if lhs > near else 0)
    return max(0, far - overlapped) + (0 if overlapped and rhs <= unit.target.caches.l2 else read_rhs * again)


def _operand_bytes(blocking: Blocking, column: int) -> int:
    """Bytes of an operand, or of its copy; elements shared by overlapping windows count once."""
    walk = blocking.walks[column]
    element = (blocking.contraction.lhs, blocking.contraction.rhs)[column].element
    return (walk.elements if column in blocking.copied else min(walk.elements, walk.span)) * bytes_of(element)


def _cache_miss_cycles(blocking: Blocking, column: int, unit: ComputeUnit) -> float:
    """Approximate cycles that a block waits for an operand that does not stay in the caches between blocks.

    It stays if it leaves room for the other one: 14 products of 14 x 1024 by 1024 x 256 floats, 1 MiB, take 10 % more
    time than one of 196 rows (AVX-512, Xeon 6/167/1).
    """
    size = blocking.block_bytes(column)
    stays = size * _set_conflict_factor(blocking, column, unit) < unit.costs.cached_operand_bytes
    return 0 if stays or not blocking.is_reused(column) else size / unit.target.memory.bytes_per_cycle


def _set_conflict_factor(blocking: Blocking, column: int, unit: ComputeUnit) -> float:
    """The factor by which a cache shrinks for an operand whose rows share cache sets."""
    if column in blocking.copied:
        return 1
    runs = (blocking.m, blocking.k) if column == LHS else (blocking.k, blocking.n)
    size = bytes_of((blocking.contraction.lhs, blocking.contraction.rhs)[column].element)
    near, far = sorted(runs, key=lambda run: run.strides[column])
    step = far.strides[column] * size
    return max(1, step / (near.extent * size)) if step % unit.target.caches.four_set_pitch == 0 else 1


def _set_conflict_store_cycles(blocking: Blocking, unit: ComputeUnit) -> float:
    """Approximate extra cycles to store a register transposed, where columns share few sets of L1.

    The columns of a panel are written row tile by row tile: a line of each has to stay until it is full.
    """
    if not blocking.is_transposed:
        return 0
    caches = unit.target.caches
    pitch = blocking.n.strides[OUT] * bytes_of(blocking.contraction.out.element)
    lines = caches.l1 // math.gcd(pitch, caches.l1_way_bytes)
    panel = unit.target.registers // _PANEL_SHARE * unit.lanes
    return unit.costs.set_conflict_store_cycles if min(blocking.n.extent, panel) > lines else 0


def _reduced_cycles(blocking: Blocking, vectors: int, unit: ComputeUnit) -> float:
    """Approximate cycles to reduce a block, besides those to compute its rows.

    Columns are reduced, so that rows may be adjacent in the left operand. Those of narrow elements are transposed for
    dot products.
    """
    m, k = blocking.m, blocking.k
    layout = None if LHS in blocking.copied else block_loaded_as(LHS, m, k)
    is_transposed = layout is not None and not layout[0] and bytes_of(blocking.contraction.lhs.element) < 4
    return m.extent * (
        vectors
        + unit.costs.horizontal_reduction_cycles
        + (unit.costs.narrow_transpose_cycles * k.extent if is_transposed else 0)
    )


def _is_dense(dims: Sequence[tuple[int, int]]) -> bool:
    """Whether dimensions, the outermost one first, have the strides of a dense array."""
    step = 1
    for extent, stride in reversed(dims):
        if stride != step:
            return False
        step *= extent
    return True


def _copy_cost(blocking: Blocking, column: int, unit: ComputeUnit) -> float:
    """Approximate cycles of a copy; infinite if it is much larger than the operand, or in the operand's own order."""
    memory = (blocking.contraction.lhs, blocking.contraction.rhs)[column]
    dims, count, span = blocking.walks[column]
    if (column == LHS or blocking.groups is None) and _is_dense(dims):
        return math.inf
    if count > 2 * span and count * bytes_of(memory.element) > unit.costs.max_overlapping_copy_bytes:
        return math.inf
    if column == LHS or blocking.groups is None:
        return unit.costs.call_cycles + copy_cycles(dims, memory.element, unit.target, permutes=unit.permutes)
    columns = [StridedDim(extent, strides[RHS]) for extent, strides in blocking.n.dims]
    return unit.costs.call_cycles + blocking.groups.cycles(count // blocking.n.extent, columns, unit.lanes, unit.costs)
