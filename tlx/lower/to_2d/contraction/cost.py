"""The cost of a blocking in cycles, and the unit (vectors or matrix) that multiplies its matrices.

About how many cycles a contraction takes as 2-D products: what `choose_blocking` compares choices by.

What multiplies the matrices of a contraction, as far as the choice of these matrices has to know.

unit       a product of M x N x K takes cycles                        and what is missing
vectors    M * (N / lanes) * K / 2                                    along N is filled up
matrix     (N / lanes) * (K / step) * (M / rows * tile + packing)     along all three is
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import BFLOAT, HALF, Type, bits_of, bytes_of
from tlx.lower.memory.views import StridedDim
from tlx.lower.to_2d.contraction.blocking import MOST_CHAINED, Blocking, block_loaded_as
from tlx.lower.to_2d.contraction.problem import LHS, RHS
from tlx.lower.to_2d.memory.copies import FAR_BYTE_CYCLES, LINE_BYTES, NEAR_BYTES, TRANSPOSED_CYCLES, copy_cycles
from tlx.target.target import Target

_CHAINS: Final = 8
"""Sums that have to be under way at a time for full speed."""
_NEAR: Final = 32 << 10
"""Bytes of a right operand that stay in the first cache."""
_FEW: Final = 2
"""Rows that take as long as one where the right operand comes from farther away: it is read once for several rows."""
_TILE: Final = 25
"""Cycles of a product of tiles, its loads included."""
_PACKED: Final = 128
"""Cycles to pack a tile of the right operand."""
_GROUPED: Final = 16
"""As much where its rows are interleaved already."""
_WORD_BITS: Final = 32
_REGISTER: Final = 64


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """A unit.

    Attributes:
        lanes: Sums that a vector register holds, or a row of a tile.
        rows: Rows of a tile; 0 for vectors.
        k_step: Positions along K in a tile.
        width: Rows of the right operand that it reads interleaved.
        permutes: Whether the left operand's elements are permuted in registers of 64 bytes by one instruction.
        cache: Bytes of the second cache.
        dot_share: Of the cycles of multiply-adds, those of dot products on vectors; 1 where there are none.
    """

    lanes: int
    rows: int = 0
    k_step: int = 1
    width: int = 1
    permutes: bool = False
    cache: int = 0
    dot_share: float = 1.0

    @classmethod
    def of(cls, target: Target, lhs: Type, rhs: Type, element: Type) -> ComputeUnit:
        """The fastest unit of a target that multiplies elements of two types and adds up those of a third."""
        lanes = target.vector_bytes * 8 // max(32, bits_of(element))
        permutes = target.vector_bytes == _REGISTER and target.can_permute(bits_of(lhs))
        types = str(lhs), str(rhs)
        sums = types[0], types[1], "float" if element in (HALF, BFLOAT) else str(element)
        on_vectors = [d for d in target.usable_dots if (d.lhs[0], d.rhs[0], d.accumulator) == sums]
        dot_share = min((d.cycles / d.width * target.core.products for d in on_vectors), default=1.0)
        dots = [] if target.versions else [d for d in target.usable_matrix_dots if types == (d.lhs[0], d.rhs[0])]
        if target.matrix is None or not dots:
            return cls(lanes, permutes=permutes, cache=target.caches.l2, dot_share=dot_share)
        width = dots[0].width if lhs == rhs and bits_of(element) <= _WORD_BITS else 1
        return cls(
            lanes, target.matrix.rows, target.matrix.row_bytes // bytes_of(lhs), width, permutes, dot_share=dot_share
        )

    def has_tiles_for(self, rows: int, columns: int) -> bool:
        """Whether tiles may multiply matrices of so many rows and columns; vectors are better for one."""
        return self.rows > 0 and rows > 1 and columns > 1

    def cycles(self, rows: int, columns: int, depth: int, group: int = 1, packings: float = 1) -> float:
        """About how many cycles a product takes.

        Args:
            rows: Its rows.
            columns: Its columns.
            depth: Positions along K.
            group: How many rows of the right operand lie interleaved.
            packings: How often that is packed: less than once where several products share it.
        """
        vectors = -(-columns // self.lanes)
        is_near = depth * columns * _WORD_BITS // 8 <= _NEAR
        by_vectors = max((rows if is_near else max(rows, _FEW)) * vectors, _CHAINS) * depth / 2
        if not self.rows or (group == 1 and not self.has_tiles_for(rows, columns)):
            return by_vectors
        tiles = vectors * -(-depth // self.k_step)
        if group > 1:
            return tiles * (-(-rows // self.rows) * _TILE + _GROUPED)
        return min(by_vectors, tiles * (-(-rows // self.rows) * _TILE + _PACKED * packings))


CALL_CYCLES: Final = 100
"""Cycles that a 2-D product takes beside its arithmetic."""
_TERM: Final = 4
_TERM_OF_REGISTER: Final = 0.8
"""Cycles between two products of a sum; more for each register of the result, whose tiles begin a loop each."""
_CROWDED: Final = 1024
"""Bytes of which the distance of rows is a multiple where rows share cache sets."""
_LINE: Final = 0.05
"""Cycles that products of registers take longer where the left operand has another line for each position of K."""
_STORE: Final = 2
_TRANSPOSED_STORE: Final = 6
"""Cycles to store a register of the result, and one that is turned before."""
_TRANSPOSED_NARROW_STORE: Final = 4
"""Cycles to turn a narrow element for dot products."""
_CROSSED: Final = 20
"""Cycles that the load of a tile of the right operand takes longer where its rows cross lines."""
_APART: Final = 6
"""Those that the load of a tile of the left operand takes longer where its rows do not lie behind each other."""
_NARROW: Final = 1.5
"""Cycles to pack, or convert, a register of a narrow right operand, for a position along K: 1.4 of pairs of bfloat, 1.7
to convert them (Zen 5, AVX-512 and AVX2)."""
_SIGNED: Final = 4
"""Cycles to change the sign of the bytes of a register of the left operand."""
FOLDED_CYCLES: Final = 4
"""Cycles to reduce a vector to one element."""
_MOST_REPEATED: Final = 16 << 20
"""Bytes up to which a copy may hold elements of overlapping windows more than twice."""


def blocking_cycles(blocking: Blocking, unit: ComputeUnit) -> float:
    """About how many cycles a choice takes."""
    rows, depth = blocking.m.extent, blocking.k.extent
    group = blocking.contraction.rhs.vnni_group if blocking.groups is None else blocking.groups.width
    vectors = -(-blocking.n.extent // unit.lanes)
    terms, products = (blocking.sums, 1) if blocking.sums <= MOST_CHAINED else (1, blocking.sums)
    shared = math.prod(run.extent for run in blocking.loops if not run.strides[RHS])
    between = _TERM if unit.rows else _TERM + _TERM_OF_REGISTER * rows * vectors * (not blocking.k_in_memory_order)
    cycles = CALL_CYCLES + terms * (between + unit.cycles(rows, blocking.n.extent, depth, group, 1 / shared))
    if unit.rows and _crosses_lines(blocking):
        cycles += terms * vectors * -(-rows // (2 * unit.rows)) * (depth / unit.k_step) * _CROSSED
    if unit.rows and not (LHS in blocking.copied and depth <= unit.k_step):
        cycles += terms * -(-rows // unit.rows) * -(-vectors // 2) * (depth / unit.k_step) * _APART
    stored = _TRANSPOSED_STORE if blocking.is_transposed else _STORE
    cycles += _reduced_cycles(blocking, vectors) if blocking.contraction.reduces else stored * rows * vectors
    lhs = None if LHS in blocking.copied else block_loaded_as(LHS, blocking.m, blocking.k)
    if lhs is not None and not lhs[0] and not unit.rows:
        cycles += terms * depth * rows * min(_LINE * vectors, TRANSPOSED_CYCLES)
    rhs = None if RHS in blocking.copied else block_loaded_as(RHS, blocking.k, blocking.n)
    if rhs is not None and not rhs[0]:
        cycles += terms * depth * blocking.n.extent * TRANSPOSED_CYCLES
    cycles += sum(_far_cycles(blocking, column) for column in (LHS, RHS)) / products
    copies = sum(_copy_cost(blocking, column, unit) for column in blocking.copied)
    multiplied = blocking.blocks * products * cycles
    in_rows = lhs is not None and lhs[0] and not unit.rows
    return multiplied + _outside_cycles(blocking, multiplied if in_rows else 0, unit) + copies


def narrow_packing_cycles(blocking: Blocking, unit: ComputeUnit) -> float:
    """About how many cycles it takes to pack narrow operands for vectors, where products read them by these.

    The right one is packed or converted, once where blocks share it; bytes of the left one change their sign.
    """
    lhs, rhs = blocking.contraction.lhs, blocking.contraction.rhs
    rows, columns, depth = blocking.m.extent, blocking.n.extent, blocking.k.extent
    if rhs.vnni_group > 1 or blocking.groups is not None or unit.has_tiles_for(rows, columns):
        return 0
    shared = math.prod(run.extent for run in blocking.loops if not run.strides[RHS])
    packed = depth * -(-columns // unit.lanes) * _NARROW / shared
    if bytes_of(lhs.element) == 1:
        packed += rows * -(-depth // LINE_BYTES) * _SIGNED
    return blocking.blocks * blocking.sums * packed


def _crosses_lines(blocking: Blocking) -> bool:
    """Whether a matrix unit's tiles of interleaved rows begin anywhere in a line: windows that overlap."""
    rhs = blocking.contraction.rhs
    if rhs.vnni_group == 1:
        return False
    steps = [
        run.strides[RHS] * rhs.vnni_group * bytes_of(rhs.element) for run in (*blocking.outer_k, *blocking.quasi_affine)
    ]
    return any(step % LINE_BYTES for step in steps)


def _outside_cycles(blocking: Blocking, beside: float, unit: ComputeUnit) -> float:
    """About how many cycles it takes to read operands, or their copies, that are larger than the near caches.

    The left one is read once for each part of the right one that stays there. The right one is
    asked for ahead where it stays in all of the second cache.

    Args:
        blocking: The choice.
        beside: Cycles in which the left one comes beside what is done: rows that a core sees coming.
        unit: What multiplies.
    """
    lhs, rhs = (_operand_bytes(blocking, column) for column in (LHS, RHS))
    parts = -(-rhs // NEAR_BYTES)
    again = rhs if parts > 1 and blocking.sliced_operand != RHS else 0
    far = FAR_BYTE_CYCLES * (lhs * parts if lhs > NEAR_BYTES else 0)
    return max(0, far - beside) + (0 if beside and rhs <= unit.cache else FAR_BYTE_CYCLES * again)


def _operand_bytes(blocking: Blocking, column: int) -> int:
    """Bytes of an operand, or its copy; those of overlapping windows count once."""
    _, count, reach = _dims(blocking, column)
    element = (blocking.contraction.lhs, blocking.contraction.rhs)[column].element
    return (count if column in blocking.copied else min(count, reach)) * bytes_of(element)


def _dims(blocking: Blocking, column: int) -> tuple[list[tuple[int, int]], int, int]:
    """An operand's dimensions in the order of a copy, its elements, and from the first to behind the last in memory."""
    dims = [(extent, strides[column]) for run in blocking.order(column) for extent, strides in run.dims]
    reach = 1 + sum((extent - 1) * stride for extent, stride in dims)
    return dims, math.prod(extent for extent, _ in dims), reach


def _far_cycles(blocking: Blocking, column: int) -> float:
    """About how many cycles a block waits for an operand that does not stay in the caches between blocks."""
    size = blocking.block_bytes(column)
    stays = size * _crowding(blocking, column) <= NEAR_BYTES
    return 0 if stays or not blocking.is_reused(column) else size * FAR_BYTE_CYCLES


def _crowding(blocking: Blocking, column: int) -> float:
    """How much less of a cache there is for an operand whose rows share cache sets."""
    if column in blocking.copied:
        return 1
    runs = (blocking.m, blocking.k) if column == LHS else (blocking.k, blocking.n)
    size = bytes_of((blocking.contraction.lhs, blocking.contraction.rhs)[column].element)
    near, far = sorted(runs, key=lambda run: run.strides[column])
    step = far.strides[column] * size
    return max(1, step / (near.extent * size)) if step % _CROWDED == 0 else 1


def _reduced_cycles(blocking: Blocking, vectors: int) -> float:
    """About how many cycles it takes to reduce a block, beside those to compute its rows.

    Columns are what is reduced, so that rows may be what lies next to each other in the left operand. Those of narrow
    elements are turned for dot products.
    """
    m, k = blocking.m, blocking.k
    found = None if LHS in blocking.copied else block_loaded_as(LHS, m, k)
    is_turned = found is not None and not found[0] and bytes_of(blocking.contraction.lhs.element) < 4
    return m.extent * (vectors + FOLDED_CYCLES + (_TRANSPOSED_NARROW_STORE * k.extent if is_turned else 0))


def _copy_cost(blocking: Blocking, column: int, unit: ComputeUnit) -> float:
    memory = (blocking.contraction.lhs, blocking.contraction.rhs)[column]
    dims, count, reach = _dims(blocking, column)
    if count > 2 * reach and count * bytes_of(memory.element) > _MOST_REPEATED:
        return math.inf
    if column == LHS or blocking.groups is None:
        return CALL_CYCLES + copy_cycles(dims, memory.element, permutes=unit.permutes)
    columns = [StridedDim(extent, strides[RHS]) for extent, strides in blocking.n.dims]
    return CALL_CYCLES + blocking.groups.cycles(count // blocking.n.extent, columns, unit.lanes)
