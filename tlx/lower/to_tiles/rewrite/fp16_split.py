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

from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, I16, I32, Type, bytes_of
from tlx.ir.values import const_float, const_int
from tlx.lower.cost import transfer_cycles
from tlx.lower.operations import ElementwiseOp
from tlx.lower.to_tiles.expression import Expression, InstructionNode, MatrixLeaf, MatrixView, Node, SplatLeaf
from tlx.lower.to_tiles.problem import Elementwise, Gemm, KernelOperand, KernelSequence, KernelStep
from tlx.lower.to_tiles.select.recipe import round_up
from tlx.lower.to_tiles.select.recipe_cost import cost
from tlx.lower.to_tiles.select.selection import select
from tlx.target.costs.memory import Caches
from tlx.target.matrix_unit import Fp16SplitCosts
from tlx.target.target import Target

_SHORTENED: Final = 127 / 128
_UPPER: Final = 1 << 16
_C, _A, _B, _ACC = range(4)  # pointers of a product's match
_GRANULE: Final = 32
"""Rows, columns and positions of K that blocks are a multiple of: whole register tiles."""


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
        rows, columns, depths: Blocks of M, N and K.
    """

    gemm: Gemm
    caches: Caches
    rows: tuple[Interval, ...]
    columns: tuple[Interval, ...]
    depths: tuple[Interval, ...]

    @classmethod
    def of(cls, gemm: Gemm, caches: Caches, costs: Fp16SplitCosts) -> Fp16Split:
        """The product in blocks whose parts need little memory; in one block if C cannot hold partial sums."""
        whole = tuple((Interval(0, extent),) for extent in (gemm.m, gemm.n, gemm.k))
        if gemm.epilogue is not None or gemm.reduction is not None or gemm.c.element != FLOAT:
            return cls(gemm, caches, *whole)
        depths = _intervals(gemm.k, costs.max_k)
        rows, columns = (most // (2 * bytes_of(BFLOAT) * depths[0].size) for most in costs.max_bytes)
        return cls(gemm, caches, _intervals(gemm.m, rows), _intervals(gemm.n, columns), depths)

    @property
    def first(self) -> Gemm:
        """The product of the first block's parts; no block is larger."""
        gemm, rows, columns, depth = self.gemm, self.rows[0], self.columns[0], self.depths[0]
        a, b = _resized_view(gemm.a, rows, depth), _resized_view(gemm.b, depth, columns)
        return _sum_of_part_products(
            replace(gemm, c=_resized_view(gemm.c, rows, columns)), self._part(a), self._part(b)
        )

    @property
    def bytes(self) -> int:
        """Bytes of memory for the parts."""
        return 2 * bytes_of(BFLOAT) * (_part_size(self.first.a) + _part_size(self.first.b))

    def cycles(self, target: Target) -> float:
        """Estimated cycles; B is split once for each block of rows."""
        gemm, first, split = (
            self.gemm,
            self.first,
            target.matrix.costs.fp16_split if target.matrix is not None else None,
        )
        assert split is not None
        blocks = gemm.m * gemm.n * gemm.k / (first.m * first.n * first.k)
        halves = gemm.m * gemm.k + gemm.k * gemm.n * len(self.rows)
        splitting = halves * split.element_cycles + transfer_cycles(
            4 * halves * bytes_of(HALF), target.caches, target.memory
        )
        return splitting + blocks * cost(first, select(first, target), target).total

    def sequence(self) -> KernelSequence:
        """The kernels that split blocks of the operands, and those that multiply the parts."""
        gemm, steps = self.gemm, list[KernelStep]()
        for depth in self.depths:
            for rows in self.rows:
                self._split(_block(gemm.a, _A, rows, depth), steps)
                for columns in self.columns:
                    if len(self.columns) > 1 or rows is self.rows[0]:
                        self._split(_block(gemm.b, _B, depth, columns), steps)
                    c = _block(gemm.c, _C, rows, columns)
                    acc = c if depth is not self.depths[0] else None
                    if acc is None and gemm.acc is not None:
                        acc = _block(gemm.acc, _ACC, rows, columns)
                    a, b = (
                        self._part(_resized_view(gemm.a, rows, depth)),
                        self._part(_resized_view(gemm.b, depth, columns)),
                    )
                    problem = _sum_of_part_products(replace(gemm, c=c.view, acc=acc.view if acc else None), a, b)
                    parts = KernelOperand(a, _A - 1, is_temporary=True), KernelOperand(b, _B - 1, is_temporary=True)
                    steps.append(KernelStep(problem, (c, *parts, *((acc,) if acc else ()))))
        sizes = (2 * _part_size(view) for view in (self.first.a, self.first.b))
        return KernelSequence(tuple(steps), tuple((BFLOAT, size) for size in sizes))

    def _split(self, source: KernelOperand, steps: list[KernelStep]) -> None:
        """Append the kernels that compute both parts of a block of A or B."""
        for number in range(2):
            problem = self._split_problem(source.view, number)
            offset = number * _part_size(self._part(source.view))
            part = KernelOperand(problem.destination, source.number - 1, offset, is_temporary=True)
            steps.append(KernelStep(problem, (part, source)))

    def _part(self, view: MatrixView, element: Type = BFLOAT) -> MatrixView:
        """The layout of a part: rows of whole cache lines, plus one line where 16 rows would share few sets."""
        line, width = self.caches.line_bytes, view.cols if view.is_row_major else view.rows
        size = round_up(width * bytes_of(element), line)
        pitch = (size + (line if size % self.caches.four_set_pitch == 0 else 0)) // bytes_of(element)
        return MatrixView(element, view.rows, view.cols, *((pitch, 1) if view.is_row_major else (1, pitch)))

    def _split_problem(self, view: MatrixView, number: int) -> Elementwise:
        """The elementwise problem that computes the first or second part, as the upper halves of floats."""
        lines = view if view.is_row_major else MatrixView(view.element, view.cols, view.rows, view.col_stride, 1)
        return Elementwise(self._part(lines, I16), _upper_half(lines, number))


def split_fp16(gemm: Gemm, target: Target) -> Fp16Split | None:
    """The fp16 product split for the target's bf16 matrix unit, where that is faster; else None."""
    if len(gemm.term_offsets) > 1 or {gemm.a.element, gemm.b.element} != {HALF}:
        return None
    if target.matrix is None or not _multiplies_bfloat(target) or max(gemm.a.interleave, gemm.b.interleave) > 1:
        return None
    costs = target.matrix.costs.fp16_split
    if costs is None:
        return None
    vectors, parts = select(gemm, target), Fp16Split.of(gemm, target.caches, costs)
    splits = vectors.mma.unit != "matrix" and select(parts.first, target).mma.unit == "matrix"
    if not splits or parts.bytes > 2 * sum(costs.max_bytes):
        return None
    return parts if parts.cycles(target) < costs.max_vector_share * cost(gemm, vectors, target).total else None


def _intervals(extent: int, most: int) -> tuple[Interval, ...]:
    """Equal blocks of at most `most` positions; the last one may be smaller."""
    size = round_up(-(-extent // -(-extent // max(most, _GRANULE))), _GRANULE)
    return tuple(Interval(start, min(size, extent - start)) for start in range(0, extent, size))


def _multiplies_bfloat(target: Target) -> bool:
    return any(dot.lhs[0] == dot.rhs[0] == "bfloat" for dot in target.usable_matrix_dots)


def _sum_of_part_products(gemm: Gemm, a: MatrixView, b: MatrixView) -> Gemm:
    """The sum of the products of both parts of A by both parts of B."""
    return replace(gemm, a=a, b=b, term_offsets=((0, 0), (_part_size(a), _part_size(b))), all_pairs=True)


def _resized_view(view: MatrixView, rows: Interval, columns: Interval) -> MatrixView:
    return replace(view, rows=rows.size, cols=columns.size)


def _block(view: MatrixView, number: int, rows: Interval, columns: Interval) -> KernelOperand:
    """A block of a matrix of the product."""
    offset = rows.start * view.row_stride + columns.start * view.col_stride
    return KernelOperand(_resized_view(view, rows, columns), number, offset)


def _part_size(view: MatrixView) -> int:
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
