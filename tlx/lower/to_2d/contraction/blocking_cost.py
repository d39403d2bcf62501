"""The cost of a blocking: approximate cycles of a contraction as 2-D products, for comparing choices."""

from __future__ import annotations

import math
from typing import Final

from tlx.ir.types import bytes_of
from tlx.lower.cost import ComputeUnit
from tlx.lower.memory.views import StridedDim
from tlx.lower.to_2d.contraction.blocking import MOST_CHAINED, Blocking, block_loaded_as
from tlx.lower.to_2d.contraction.problem import LHS, RHS
from tlx.lower.to_2d.memory.copies import copy_cycles
from tlx.target.hardware import drawn_cycles

_WORD: Final = 4


def blocking_cycles(blocking: Blocking, unit: ComputeUnit) -> float:
    """Approximate cycles of a contraction by this blocking."""
    rows, depth, costs = blocking.m.extent, blocking.k.extent, unit.costs
    group = blocking.contraction.rhs.vnni_group if blocking.groups is None else blocking.groups.width
    vectors = -(-blocking.n.extent // unit.lanes)
    terms, products = (blocking.sums, 1) if blocking.sums <= MOST_CHAINED else (1, blocking.sums)
    shared = math.prod(run.extent for run in blocking.loops if not run.strides[RHS])
    between = costs.term
    if not unit.rows and not blocking.k_in_memory_order:
        between += costs.term_register * rows * vectors
    cycles = costs.call + terms * (between + unit.cycles(rows, blocking.n.extent, depth, group, 1 / shared))
    timing = unit.timing
    if timing is not None and _crosses_lines(blocking, unit):
        cycles += terms * vectors * -(-rows // (2 * unit.rows)) * (depth / unit.k_step) * timing.crossing_load
    if timing is not None and not (LHS in blocking.copied and depth <= unit.k_step):
        cycles += terms * -(-rows // unit.rows) * -(-vectors // 2) * (depth / unit.k_step) * timing.scattered_load
    stored = costs.store[blocking.is_transposed] * rows * vectors
    cycles += _reduced_cycles(blocking, vectors, unit) if blocking.contraction.reduces else stored
    lhs = None if LHS in blocking.copied else block_loaded_as(LHS, blocking.m, blocking.k)
    if lhs is not None and not lhs[0] and not unit.rows:
        cycles += terms * depth * rows * min(costs.line * vectors, costs.transposed_element)
    rhs = None if RHS in blocking.copied else block_loaded_as(RHS, blocking.k, blocking.n)
    if rhs is not None and not rhs[0]:
        cycles += terms * depth * blocking.n.extent * costs.transposed_element
    cycles += sum(_far_cycles(blocking, column, unit) for column in (LHS, RHS)) / products
    copies = sum(_copy_cost(blocking, column, unit) for column in blocking.copied)
    multiplied = blocking.blocks * products * cycles
    in_rows = lhs is not None and lhs[0] and not unit.rows
    cycles = multiplied + _outside_cycles(blocking, multiplied if in_rows else 0, unit) + copies
    return drawn_cycles(costs.seed, cycles, blocking)


def narrow_packing_cycles(blocking: Blocking, unit: ComputeUnit) -> float:
    """Approximate cycles to pack narrow operands, where products are computed on vectors.

    The right one is packed in groups of 32 bits, once where blocks share it; the left one's bytes are copied to flip
    their signs.
    """
    lhs, rhs = blocking.contraction.lhs, blocking.contraction.rhs
    rows, columns, depth = blocking.m.extent, blocking.n.extent, blocking.k.extent
    if rhs.vnni_group > 1 or blocking.groups is not None or unit.has_tiles_for(rows, columns):
        return 0
    shared = math.prod(run.extent for run in blocking.loops if not run.strides[RHS])
    registers = depth * bytes_of(rhs.element) / _WORD * -(-columns // unit.lanes) / shared
    if bytes_of(lhs.element) == 1:
        registers += rows * -(-depth // unit.costs.register)
    cycles = blocking.blocks * blocking.sums * registers * unit.target.core.costs.packed
    return drawn_cycles(unit.costs.seed, cycles, "packing", blocking)


def _crosses_lines(blocking: Blocking, unit: ComputeUnit) -> bool:
    """Whether a matrix unit's tiles of interleaved rows cross cache lines, as those of overlapping windows do."""
    rhs = blocking.contraction.rhs
    if rhs.vnni_group == 1:
        return False
    steps = [
        run.strides[RHS] * rhs.vnni_group * bytes_of(rhs.element) for run in (*blocking.outer_k, *blocking.quasi_affine)
    ]
    return any(step % unit.target.caches.line for step in steps)


def _outside_cycles(blocking: Blocking, beside: float, unit: ComputeUnit) -> float:
    """Approximate cycles to read operands, or their copies, that exceed the caches near the core.

    The left one is read once for each part of the right one that stays there. The right one is prefetched where all of
    it stays in the second-level cache. A copy is evicted before it is read, so each of its bytes moves twice.

    Args:
        blocking: The blocking.
        beside: Cycles of other work that hide reading the left one, whose rows the core prefetches.
        unit: The unit that multiplies.
    """
    lhs, rhs = (_operand_bytes(blocking, column) for column in (LHS, RHS))
    near, memory = unit.costs.near, unit.target.memory
    read_lhs, read_rhs = ((1 + (column in blocking.copied)) / memory.bytes_per_cycle for column in (LHS, RHS))
    parts = -(-rhs // near)
    again = rhs if parts > 1 and blocking.sliced_operand(near) != RHS else 0
    far = read_lhs * (lhs * parts if lhs > near else 0)
    return max(0, far - beside) + (0 if beside and rhs <= unit.target.caches.l2 else read_rhs * again)


def _operand_bytes(blocking: Blocking, column: int) -> int:
    """Bytes of an operand, or of its copy; elements shared by overlapping windows count once."""
    _, count, reach = _dims(blocking, column)
    element = (blocking.contraction.lhs, blocking.contraction.rhs)[column].element
    return (count if column in blocking.copied else min(count, reach)) * bytes_of(element)


def _dims(blocking: Blocking, column: int) -> tuple[list[tuple[int, int]], int, int]:
    """An operand's dimensions in the order of a copy, its number of elements, and their span in memory."""
    dims = [(extent, strides[column]) for run in blocking.order(column) for extent, strides in run.dims]
    reach = 1 + sum((extent - 1) * stride for extent, stride in dims)
    return dims, math.prod(extent for extent, _ in dims), reach


def _far_cycles(blocking: Blocking, column: int, unit: ComputeUnit) -> float:
    """Approximate cycles that a block waits for an operand that does not stay in the caches between blocks."""
    size = blocking.block_bytes(column)
    stays = size * _crowding(blocking, column, unit) <= unit.costs.near
    return 0 if stays or not blocking.is_reused(column) else size / unit.target.memory.bytes_per_cycle


def _crowding(blocking: Blocking, column: int, unit: ComputeUnit) -> float:
    """The factor by which a cache shrinks for an operand whose rows share cache sets."""
    if column in blocking.copied:
        return 1
    runs = (blocking.m, blocking.k) if column == LHS else (blocking.k, blocking.n)
    size = bytes_of((blocking.contraction.lhs, blocking.contraction.rhs)[column].element)
    near, far = sorted(runs, key=lambda run: run.strides[column])
    step = far.strides[column] * size
    return max(1, step / (near.extent * size)) if step % unit.target.caches.crowded_pitch == 0 else 1


def _reduced_cycles(blocking: Blocking, vectors: int, unit: ComputeUnit) -> float:
    """Approximate cycles to reduce a block, besides those to compute its rows.

    Columns are reduced, so that rows may be adjacent in the left operand. Those of narrow elements are transposed for
    dot products.
    """
    m, k = blocking.m, blocking.k
    found = None if LHS in blocking.copied else block_loaded_as(LHS, m, k)
    is_transposed = found is not None and not found[0] and bytes_of(blocking.contraction.lhs.element) < 4
    return m.extent * (
        vectors + unit.costs.horizontal_reduction + (unit.costs.transposed_narrow * k.extent if is_transposed else 0)
    )


def _copy_cost(blocking: Blocking, column: int, unit: ComputeUnit) -> float:
    memory = (blocking.contraction.lhs, blocking.contraction.rhs)[column]
    dims, count, reach = _dims(blocking, column)
    if count > 2 * reach and count * bytes_of(memory.element) > unit.costs.repeated:
        return math.inf
    if column == LHS or blocking.groups is None:
        return unit.costs.call + copy_cycles(dims, memory.element, unit.target, permutes=unit.permutes)
    columns = [StridedDim(extent, strides[RHS]) for extent, strides in blocking.n.dims]
    return unit.costs.call + blocking.groups.cycles(count // blocking.n.extent, columns, unit.lanes, unit.costs)
