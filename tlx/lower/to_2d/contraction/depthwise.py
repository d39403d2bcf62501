"""Depthwise contractions: sums of few products, computed element by element, as in a depthwise convolution.

Rewrite of a 3 x 3 kernel over 64 channels, a channel's result 54 x 54::

    for c                                     blocks of two dimensions of the result
      y[c] = w[c, 0, 0] * x[c, 0:54, 0:54] + w[c, 0, 1] * x[c, 0:54, 1:55] + ... + w[c, 2, 2] * x[c, 2:56, 2:56]

The line in the loop is one 2-D tree: a broadcast element and a strided block for each product. Such a contraction has
no matrix products: each filter reads one channel, so a matrix product would have a single row or sum a single product.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import FloatType, Type, VectorType
from tlx.ir.values import Value
from tlx.lower.cost import ComputeUnit, randomized_cycles
from tlx.lower.to_2d.contraction.problem import (
    LEAVES,
    LHS,
    OUT,
    RHS,
    Contraction,
    ContractionEpilogue,
    EpilogueOperand,
    ModularStride,
    sum_type,
)
from tlx.lower.to_2d.contraction.slices import SlicedOperand, slice_loops
from tlx.lower.to_2d.loop_nests import INDEX_LIMIT, CollapsedDims, LoopDim, collapse_for_operands, loop_nest
from tlx.lower.to_2d.memory.copies import load_block, store_block

_MAX_PRODUCTS: Final = 27
"""Largest number of products of a sum, which are fully unrolled."""

_MAX_VECTOR_PRODUCTS: Final = 49
"""The same for products of two vectors, as if channels are innermost: no factor of theirs is broadcast."""


@dataclass(frozen=True, eq=False)
class DepthwiseBlocking:
    """The blocks of a depthwise contraction.

    Attributes:
        contraction: The contraction.
        rows, cols: The dimensions of the blocks.
        outer: Loops around the blocks.
        places: Element offsets of the factors of each product in lhs and rhs.
    """

    contraction: Contraction
    rows: CollapsedDims
    cols: CollapsedDims
    outer: tuple[CollapsedDims, ...]
    places: tuple[tuple[int, int], ...]


def choose_depthwise(c: Contraction, unit: ComputeUnit) -> tuple[DepthwiseBlocking, float] | None:
    """The best blocking and its estimated cycles; None if there are matrix products, or sums are long."""
    count = math.prod(extent for extent, *_ in c.k) * (1 if c.quasi_affine is None else c.quasi_affine.extent)
    if c.lhs.small_floats or c.rhs.small_floats:  # only products read bytes as floats
        return None
    if count > _MAX_VECTOR_PRODUCTS or c.acc is not None or c.kind != "matmul" or _has_matrices(c):
        return None
    dims = sorted(
        (dim for dim in (*c.batch, *c.m, *c.n) if dim.extent > 1), key=lambda dim: dim.strides[OUT], reverse=True
    )
    runs = collapse_for_operands(dims, frozenset())
    single = CollapsedDims((LoopDim(1, (0,) * c.width),))
    places, reduces = tuple(_places(c)), c.reduces
    best: tuple[DepthwiseBlocking, float] | None = None
    for rows, cols in product([*runs, single], repeat=2):
        if (rows is cols and rows is not single) or not _fits(rows, cols, reduces=reduces):
            continue
        if count > _MAX_PRODUCTS and not cols.strides[LHS] == cols.strides[RHS] == 1:
            continue
        outer = tuple(run for run in runs if run is not rows and run is not cols)
        if reduces and not all(run.strides[OUT] for run in outer):
            continue
        choice = DepthwiseBlocking(c, rows, cols, outer, places)
        cycles = depthwise_cycles(choice, unit)
        if best is None or (cycles, rows.strides[RHS]) < (best[1], best[0].rows.strides[RHS]):
            best = choice, cycles
    if best is None:
        return None
    choice, cycles = best
    return replace(choice, places=tuple(_places(c, choice.rows.strides[RHS]))), cycles


def _has_matrices(c: Contraction) -> bool:
    """Whether each operand has a dimension of the result that the other one does not have."""
    return all(any(extent > 1 for extent, _ in dims) for dims in (c.m, c.n))


def _fits(rows: CollapsedDims, cols: CollapsedDims, *, reduces: bool) -> bool:
    """Whether 2-D loads and stores can access a block of every operand, and reduced dimensions are columns."""
    if reduces and (cols.extent == 1 or (rows.extent > 1 and rows.strides[OUT] == 0)):
        return False
    if max((*rows.strides, *cols.strides)) >= INDEX_LIMIT:
        return False
    if cols.extent == 1:
        return True
    readable = all(right <= 1 or down == 1 for down, right in _strides(rows, cols, (LHS, RHS)))
    return (
        readable and cols.strides[OUT] == (0 if reduces else 1) and all(stride <= 1 for stride in cols.strides[LEAVES:])
    )


def _strides(rows: CollapsedDims, cols: CollapsedDims, columns: tuple[int, ...]) -> list[tuple[int, int]]:
    """Strides of rows and columns in operands; a single row counts as contiguous rows."""
    return [(rows.strides[c] if rows.extent > 1 else 1, cols.strides[c]) for c in columns]


def _places(c: Contraction, row: int = 0) -> Iterator[tuple[int, int]]:
    """Element offsets of the factors of each product in lhs and rhs.

    Args:
        c: The contraction.
        row: Distance of a block's rows in rhs. Products that are as far apart follow each other: each reads all rows
            but one of the product before it, and loads one register more (`legalize.scheduling.redundant_loads`).
    """
    dims = [(extent, ModularStride.by(strides[LHS]), ModularStride.by(strides[RHS])) for extent, strides in c.k]
    if c.quasi_affine is not None:
        dims.append(c.quasi_affine)
    dims.sort(key=lambda dim: dim[2].offset(1) == row)
    for index in product(*(range(extent) for extent, _, _ in dims)):
        pairs = list(zip(index, dims, strict=True))
        yield sum(lhs.offset(i) for i, (_, lhs, _) in pairs), sum(rhs.offset(i) for i, (_, _, rhs) in pairs)


def depthwise_cycles(choice: DepthwiseBlocking, unit: ComputeUnit) -> float:
    """The estimated cycles of a blocking."""
    vectors = choice.rows.extent * -(-choice.cols.extent // unit.lanes)
    costs = unit.costs.depthwise
    is_transposed = any(right > 1 for _, right in _strides(choice.rows, choice.cols, (LHS, RHS)))
    each = costs.product_cycles + (costs.transposed_product_cycles if is_transposed else 0)
    each -= costs.line_crossing_load_cycles * _overlap_share(choice)
    factors = choice.rows.extent * costs.factor_cycles if choice.rows.strides[LHS] else 0
    blocks = math.prod(run.extent for run in choice.outer)
    cycles = blocks * (unit.costs.call_cycles + (vectors * each + factors) * len(choice.places))
    return randomized_cycles(unit.costs.decision_seed, cycles, choice)


def _overlap_share(choice: DepthwiseBlocking) -> float:
    """The share of a row's input registers that the previous row reads, too; a tile of several rows loads them once."""
    places = {rhs for _, rhs in choice.places}
    step = choice.rows.strides[RHS] if choice.rows.extent > 1 else 0
    return sum(place + step in places for place in places) / len(places) if step else 0.0


def emit_depthwise(
    b: TensorBuilder,
    choice: DepthwiseBlocking,
    element: Type,
    epilogue: ContractionEpilogue | None,
    sliced: SlicedOperand | None,
) -> None:
    """Write the loops and the tree.

    Args:
        b: The builder.
        choice: The blocking.
        element: Type of the sums.
        epilogue: The epilogue of the sums.
        sliced: The operand that is made slice by slice, if there is one.
    """
    c, width = choice.contraction, choice.contraction.width
    columns = [LHS, RHS, OUT, *range(LEAVES, width)]
    loops = [LoopDim(run.extent, tuple(run.strides[column] for column in columns)) for run in choice.outer]
    with slice_loops(b, sliced, columns) as starts, loop_nest(b, loops, len(columns), "block") as steps:
        bases = {column: b.add(start, step) for column, start, step in zip(columns, starts, steps, strict=True)}
        rows, cols = choice.rows.extent, choice.cols.extent
        out = b.gep(c.out.element, c.out.pointer, bases[OUT], "out.ptr")
        vector = _DepthwiseSum(b, choice, element, bases).value()
        if epilogue is not None:
            leaves = [EpilogueOperand(bases[x], choice.rows.strides[x], choice.cols.strides[x]) for x in columns[3:]]
            vector = epilogue.emit(b, vector, rows, cols, leaves)
        written = 1 if c.reduces else cols
        store_block(b, vector, out, c.out.element, rows, written, choice.rows.strides[OUT])


@dataclass(frozen=True)
class _DepthwiseSum:
    """The tree of one block."""

    b: TensorBuilder
    choice: DepthwiseBlocking
    element: Type
    bases: dict[int, Value]

    @property
    def type(self) -> VectorType:
        """Type of the partial sums, which are rounded once at the end."""
        return VectorType(self.choice.rows.extent * self.choice.cols.extent, sum_type(self.element))

    def value(self) -> Value:
        """The sum as a row-major vector."""
        total: Value | None = None
        memories = self.choice.contraction.lhs, self.choice.contraction.rhs
        bases = [
            self.b.gep(memory.element, memory.pointer, self.bases[column], f"{name}.ptr")
            for column, name, memory in zip((LHS, RHS), ("lhs", "rhs"), memories, strict=True)
        ]
        for places in self.choice.places:
            pointers = [self.b.gep(m.element, base, at) for m, base, at in zip(memories, bases, places, strict=True)]
            total = self._added(total, *(self._factor(column, pointers[column]) for column in (LHS, RHS)))
        assert total is not None
        return self.b.cast("fptrunc", total, VectorType(self.type.count, self.element))

    def _factor(self, column: int, pointer: Value) -> Value:
        """One factor of each element of the block, extended to the type of the sums."""
        b, rows, cols = self.b, self.choice.rows, self.choice.cols
        element = (self.choice.contraction.lhs, self.choice.contraction.rhs)[column].element
        strides = rows.strides[column], cols.strides[column]
        vector = load_block(b, pointer, element, rows.extent, cols.extent, *strides)
        return b.cast("fpext" if isinstance(element, FloatType) else "sext", vector, self.type)

    def _added(self, total: Value | None, lhs: Value, rhs: Value) -> Value:
        b, is_float = self.b, isinstance(self.element, FloatType)
        if total is not None and is_float:
            return b.call_intrinsic("llvm.fmuladd", [self.type], self.type, [lhs, rhs, total], "sum")
        multiplied = b.binary("fmul" if is_float else "mul", lhs, rhs, "product")
        return multiplied if total is None else b.add(total, multiplied, "sum")
