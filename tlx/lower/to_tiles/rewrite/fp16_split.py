"""fp16 products as sums of bf16 products, on a matrix unit that multiplies bf16 but not fp16.

a = a1 + a2     a1 = the upper 16 bits of float(a) * 127/128     a2 = a - a1, or an infinite `a`
    A @ B = A1 @ B1 + A1 @ B2 + A2 @ B1 + A2 @ B2

A half has 11 bits of precision. 127/128 of it is smaller by 8 to 16 ulp, and truncation to 8 bits removes less than 8.
So a2 is exact, has the sign of `a`, and is zero only if `a` is. Each product is then exact in float. An infinity is the
sum of two infinities, whose products with both parts of the other factor are those of the whole; zero is the sum of two
zeros. No part is subnormal as bfloat: the smallest is 2^-31.

Blocks of both operands are split before their product, into two consecutive bfloat matrices. A step of K multiplies
both tiles of A by both of B. Speedup over float multiply-adds, measured in one process (one core of a newer Xeon,
AMX-FP16 not used; medians): 160x160x160 1.5, 256 cubed 1.65, 512 cubed 1.9 to 2.7, 1024 1.9 to 2.8, 2048 2.8, 4096 2.6.
Without padding, rows 1 KB apart conflict in the cache and take 1.07 (512 cubed) to 1.2 times as long (1024); splitting
all of K at once takes 1.4 times as long (2048). With another thread multiplying tiles on the same core, 256 and 512
cubed gain a tenth or nothing (Xeon 6/207/2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, I16, I32, Type, bytes_of
from tlx.ir.values import Value, const_float, const_int
from tlx.lower.cost import transfer_cycles
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.expression import Expression, InstructionNode, MatrixLeaf, MatrixView, Node, SplatLeaf
from tlx.lower.to_tiles.match import Match
from tlx.lower.to_tiles.pack.hoist import HoistPoints
from tlx.lower.to_tiles.problem import Elementwise, Gemm
from tlx.lower.to_tiles.select.recipe import round_up
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.selection import select
from tlx.target.hardware import Caches
from tlx.target.matrix_unit import SplitCosts
from tlx.target.target import Target

_SHORTENED: Final = 127 / 128
_UPPER: Final = 1 << 16
_GRANULE: Final = 32
"""Rows, columns and positions of K that blocks are a multiple of: whole register tiles."""

SplitStep = tuple[Elementwise | Gemm, list[tuple[Value, MatrixView]]]
"""A kernel's problem and its operands."""


@dataclass(frozen=True)
class Interval:
    """A range of rows, columns or positions of K."""

    start: int
    size: int


@dataclass(frozen=True)
class Fp16Split:
    """An fp16 product computed as products of bf16 parts.

    Attributes:
        gemm: The product.
        caches: The machine's caches, by which the parts are laid out.
        rows, columns, depths: How M, N and K are cut.
    """

    gemm: Gemm
    caches: Caches
    rows: tuple[Interval, ...]
    columns: tuple[Interval, ...]
    depths: tuple[Interval, ...]

    @classmethod
    def of(cls, gemm: Gemm, caches: Caches, costs: SplitCosts) -> Fp16Split:
        """The product in blocks whose parts take little memory; whole if C cannot be accumulated onto."""
        whole = tuple((Interval(0, extent),) for extent in (gemm.m, gemm.n, gemm.k))
        if gemm.epilogue is not None or gemm.reduction is not None or gemm.c.element != FLOAT:
            return cls(gemm, caches, *whole)
        depths = _cut(gemm.k, costs.depth)
        rows, columns = (most // (2 * bytes_of(BFLOAT) * depths[0].size) for most in costs.bytes)
        return cls(gemm, caches, _cut(gemm.m, rows), _cut(gemm.n, columns), depths)

    @property
    def first(self) -> Gemm:
        """The product of the first block's parts; no block is larger."""
        gemm, rows, columns, depth = self.gemm, self.rows[0], self.columns[0], self.depths[0]
        a, b = _of_size(gemm.a, rows, depth), _of_size(gemm.b, depth, columns)
        return _of_parts(replace(gemm, c=_of_size(gemm.c, rows, columns)), self._part(a), self._part(b))

    @property
    def bytes(self) -> int:
        """Bytes of memory for the parts."""
        return 2 * bytes_of(BFLOAT) * (_room(self.first.a) + _room(self.first.b))

    def cycles(self, target: Target) -> float:
        """Estimated cycles; B is split once for each block of rows."""
        assert target.matrix is not None
        gemm, first = self.gemm, self.first
        blocks = gemm.m * gemm.n * gemm.k / (first.m * first.n * first.k)
        halves = gemm.m * gemm.k + gemm.k * gemm.n * len(self.rows)
        splitting = halves * target.matrix.timing.split.cycles + transfer_cycles(4 * halves * bytes_of(HALF), target)
        return splitting + blocks * cost(first, select(first, target), target).total

    def rewrite_operands(self, found: Match, places: HoistPoints, b: Builder) -> list[SplitStep]:
        """Allocate the parts and turn the matched product into the last block's.

        Returns:
            The kernels to call before it.
        """
        memory = [_memory(places, b, view) for view in (self.first.a, self.first.b)]
        c, a, rhs, *acc = found.pointers[: 3 + (self.gemm.acc is not None)]
        calls: list[SplitStep] = []
        for depth in self.depths:
            for rows in self.rows:
                parts_a = self._split(b, memory[0], _piece(b, a, rows, depth), calls)
                for columns in self.columns:
                    if len(self.columns) > 1 or rows is self.rows[0]:
                        self._split(b, memory[1], _piece(b, rhs, depth, columns), calls)
                    result = _piece(b, c, rows, columns)
                    added = [_piece(b, x, rows, columns) for x in acc] if depth is self.depths[0] else [result]
                    parts_b = memory[1], self._part(_of_size(self.gemm.b, depth, columns))
                    accumulator = added[0][1] if added else None
                    product = replace(self.gemm, c=result[1], acc=accumulator)
                    problem = _of_parts(product, parts_a[1], parts_b[1])
                    calls.append((problem, [result, parts_a, parts_b, *added]))
        found.problem, operands = calls.pop()
        found.pointers[: 3 + len(acc)] = operands
        return calls

    def _split(
        self, b: Builder, memory: Value, source: tuple[Value, MatrixView], calls: list[SplitStep]
    ) -> tuple[Value, MatrixView]:
        """Append the kernels that split a matrix to `calls`; returns the address and view of its first part."""
        view = self._part(source[1])
        for number in range(2):
            problem = self._splitting(source[1], number)
            calls.append((problem, [(b.gep(BFLOAT, memory, number * _room(view)), problem.destination), source]))
        return memory, view

    def _part(self, view: MatrixView, element: Type = BFLOAT) -> MatrixView:
        """The layout of a part: rows of whole cache lines, and one more where 16 rows would share few sets."""
        line, width = self.caches.line, view.cols if view.is_row_major else view.rows
        size = round_up(width * bytes_of(element), line)
        pitch = (size + (line if size % self.caches.crowded_pitch == 0 else 0)) // bytes_of(element)
        return MatrixView(element, view.rows, view.cols, *((pitch, 1) if view.is_row_major else (1, pitch)))

    def _splitting(self, view: MatrixView, number: int) -> Elementwise:
        """The elementwise problem that computes the first or second part, as the upper halves of floats."""
        lines = view if view.is_row_major else MatrixView(view.element, view.cols, view.rows, view.col_stride, 1)
        return Elementwise(self._part(lines, I16), _upper_half(lines, number))


def split_fp16(gemm: Gemm, target: Target) -> Fp16Split | None:
    """The fp16 product split for the target's bf16 matrix unit, where that is faster; else None."""
    if len(gemm.term_offsets) > 1 or {gemm.a.element, gemm.b.element} != {HALF}:
        return None
    if target.matrix is None or not _multiplies_bfloat(target) or max(gemm.a.interleave, gemm.b.interleave) > 1:
        return None
    costs = target.matrix.timing.split
    vectors, parts = select(gemm, target), Fp16Split.of(gemm, target.caches, costs)
    splits = vectors.mma.unit != "matrix" and select(parts.first, target).mma.unit == "matrix"
    if not splits or parts.bytes > 2 * sum(costs.bytes):
        return None
    return parts if parts.cycles(target) < costs.lead * cost(gemm, vectors, target).total else None


def _cut(extent: int, most: int) -> tuple[Interval, ...]:
    """Equal blocks of at most `most` positions; the last may be smaller."""
    size = round_up(-(-extent // -(-extent // max(most, _GRANULE))), _GRANULE)
    return tuple(Interval(start, min(size, extent - start)) for start in range(0, extent, size))


def _multiplies_bfloat(target: Target) -> bool:
    return any(dot.lhs[0] == dot.rhs[0] == "bfloat" for dot in target.usable_matrix_dots)


def _of_parts(gemm: Gemm, a: MatrixView, b: MatrixView) -> Gemm:
    """The sum of the four products of parts."""
    return replace(gemm, a=a, b=b, term_offsets=((0, 0), (_room(a), _room(b))), all_pairs=True)


def _of_size(view: MatrixView, rows: Interval, columns: Interval) -> MatrixView:
    return replace(view, rows=rows.size, cols=columns.size)


def _piece(
    b: Builder, operand: tuple[Value, MatrixView], rows: Interval, columns: Interval
) -> tuple[Value, MatrixView]:
    """The address and view of a block of a matrix."""
    pointer, view = operand
    start = rows.start * view.row_stride + columns.start * view.col_stride
    if start:
        pointer = b.gep(view.element, b.retype(pointer, view.element), start)
    return pointer, _of_size(view, rows, columns)


def _memory(places: HoistPoints, b: Builder, view: MatrixView) -> Value:
    """Memory for both parts."""
    return b.retype(places.allocate(b, 2 * _room(view) * bytes_of(BFLOAT)), BFLOAT)


def _room(view: MatrixView) -> int:
    """Elements of a part, padding included."""
    return view.pitch * (view.rows if view.is_row_major else view.cols)


def _upper_half(lines: MatrixView, part: int) -> Expression:
    """The upper halves of the floats that are the first or second part."""
    first: list[Node] = [
        MatrixLeaf(HALF, lines.broadcast(), 0),
        InstructionNode(FLOAT, ElementwiseOp("fpext"), (0,)),
        SplatLeaf(FLOAT, const_float(FLOAT, _SHORTENED)),
        InstructionNode(FLOAT, ElementwiseOp("fmul"), (1, 2)),
        InstructionNode(I32, ElementwiseOp("bitcast"), (3,)),
    ]
    second: list[Node] = [
        SplatLeaf(I32, const_int(I32, -_UPPER)),
        InstructionNode(I32, ElementwiseOp("and"), (4, 5)),
        InstructionNode(FLOAT, ElementwiseOp("bitcast"), (6,)),
        InstructionNode(FLOAT, ElementwiseOp("fsub"), (1, 7)),
        InstructionNode(I1, ElementwiseOp("fcmp", predicate="oeq"), (1, 7)),
        InstructionNode(FLOAT, ElementwiseOp("select"), (9, 1, 8)),
        InstructionNode(I32, ElementwiseOp("bitcast"), (10,)),
    ]
    nodes = [*first, *(second if part else ())]
    bits = len(nodes) - 1
    nodes += [
        SplatLeaf(I32, const_int(I32, 16)),
        InstructionNode(I32, ElementwiseOp("lshr"), (bits, bits + 1)),
        InstructionNode(I16, ElementwiseOp("trunc"), (bits + 2,)),
    ]
    return Expression(lines.rows, lines.cols, tuple(nodes))
