"""Epilogues of products: threads compute elements of C from sums that stay in their registers.

    f(sums, bias, ...)     each thread, of its own sums: runs of adjacent columns
    converted to C's type
    -> shared memory       of the warp, without waiting for other warps: some rows and columns at a time
    -> C                   each thread 16 adjacent bytes of a row

Sums of fragments are runs of two columns, which are a quarter or half of what memory is accessed by: hence the way
through shared memory. Runs of four, those of products of numbers, are stored directly.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import FloatType, IntType, Type, VectorType, bytes_of
from tlx.ir.values import Keyword, Value
from tlx.lower.to_blocks.kernel import GridKernel, all_of, as_index, row_tile, vector_columns
from tlx.lower.to_blocks.merging import MergedProduct
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter
from tlx.lower.to_tiles.emit.tiles import (
    ResultTile,
    convert_tile,
    load_tile_vector,
    store_tile_vector,
    tile_address,
)
from tlx.lower.to_tiles.expression import Expression, MatrixView, ProductLeaf
from tlx.lower.to_tiles.problem import gemm_accumulator_type
from tlx.target.grid_unit import BlockShape

_PADDED_ELEMENTS: Final = 8
_CHUNK: Final = 16


def vector_of(b: TensorBuilder, values: Sequence[Value]) -> Value:
    """Values as a vector."""
    vector: Value = Keyword(VectorType(len(values), values[0].type), "undef")
    for number, value in enumerate(values):
        vector = b.insert_element(vector, value, number)
    return vector


@dataclass(frozen=True, slots=True)
class Run:
    """Sums that a thread holds and that are adjacent in a row.

    Attributes:
        row, column: How far the first one is from the thread's first sum.
        sums: The sums.
    """

    row: int
    column: int
    sums: tuple[Value, ...]

    def pieces(self, count: int) -> list[Run]:
        """Parts of it, of at most some sums."""
        firsts = range(0, len(self.sums), count)
        return [Run(self.row, self.column + first, self.sums[first : first + count]) for first in firsts]


@dataclass(frozen=True, slots=True)
class ResultPart:
    """Rows and columns of C in shared memory, where a warp puts what it has computed.

    Rows are padded, so that eight of them, in each of which four threads store two columns, are in different banks.

    Attributes:
        element: Element type of C.
        rows, cols: Extents.
    """

    element: Type
    rows: int
    cols: int

    @property
    def view(self) -> MatrixView:
        """The matrix."""
        padding = max(_PADDED_ELEMENTS, _CHUNK // bytes_of(self.element))
        return MatrixView(self.element, self.rows, self.cols, self.cols + padding, 1)

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return self.rows * self.view.row_stride * bytes_of(self.element)

    def address(self, b: TensorBuilder, base: Value, row: Value, column: Value) -> Value:
        """The address of an element, whose row and column are i32."""
        return b.gep(self.element, base, as_index(b, b.add(b.mul(row, self.view.row_stride), column)))


@dataclass(frozen=True, slots=True)
class WarpMemory:
    """Shared memory of a warp.

    Attributes:
        part: What it has room for.
        base: Its address.
        place: First row and column of the warp's sums in the tile, i32.
        lane: The thread's number in the warp, i32.
    """

    part: ResultPart
    base: Value
    place: tuple[Value, Value]
    lane: Value


@dataclass(frozen=True, slots=True)
class HeldSums:
    """A thread's sums of a tile.

    Attributes:
        origin: First row and column of the tile in C, i32.
        place: Those of the thread's first sum in the tile.
        runs: The sums.
        memory: Memory of the warp, if elements of C should pass through it.
    """

    origin: tuple[Value, Value]
    place: tuple[Value, Value]
    runs: tuple[Run, ...]
    memory: WarpMemory | None = None

    def at(self, b: TensorBuilder, run: Run) -> tuple[Value, Value]:
        """Row and column of a run in C."""
        (row, column), (down, across) = self.origin, self.place
        return b.add(b.add(row, down), run.row), b.add(b.add(column, across), run.column)


class Epilogue:
    """Computes C from sums.

    Args:
        kernel: The kernel.
        merged: The product.
        shape: The tile.

    Attributes:
        columns: Adjacent elements of C that are stored at once.
    """

    def __init__(self, kernel: GridKernel, merged: MergedProduct, shape: BlockShape) -> None:
        gemm = merged.gemm
        self.kernel, self.b, self.merged, self.shape, self.gemm = kernel, kernel.b, merged, shape, gemm
        self.accumulator = gemm_accumulator_type(gemm)
        self.value = gemm.epilogue or Expression(gemm.m, gemm.n, (ProductLeaf(gemm.c.element),))
        self.columns = vector_columns(gemm.n, gemm.c.element) if gemm.c.is_row_major else 1

    def store(self, held: HeldSums) -> None:
        """Compute and store elements of C from a thread's sums."""
        if held.memory is not None:
            self._store_by_warp(held, held.memory)
            return
        for run in held.runs:
            for piece in run.pieces(self.columns):
                self.store_columns(held.at(self.b, piece), len(piece.sums), partial(vector_of, self.b, piece.sums))

    def store_columns(self, at: tuple[Value, Value], count: int, sums: Callable[[], Value]) -> None:
        """Compute and store adjacent elements of a row of C, if they are inside.

        Args:
            at: Row and column of the first one, i32.
            count: How many: a divisor of `columns`.
            sums: Emits their sums, a vector.
        """
        with self._if_inside(at):
            self._store(at, self._result(at, count, sums))

    def _store_by_warp(self, held: HeldSums, memory: WarpMemory) -> None:
        """Compute and store elements of C that pass through the memory of the warp."""
        b, part = self.b, memory.part
        row, column = (b.sub(mine, first) for mine, first in zip(held.place, memory.place, strict=True))
        start = part.address(b, memory.base, row, column)
        parts = dict[tuple[int, int], list[Run]]()
        most = self.gemm.n & -self.gemm.n
        for run in (piece for whole in held.runs for piece in whole.pieces(most)):
            first = run.row // part.rows * part.rows, run.column // part.cols * part.cols
            parts.setdefault(first, []).append(run)
        for (down, across), runs in parts.items():
            results = [self._result_inside(held.at(b, run), run) for run in runs]
            self._wait_for_warp()
            for run, result in zip(runs, results, strict=True):
                to = b.gep(part.element, start, (run.row - down) * part.view.row_stride + run.column - across)
                count, size = len(run.sums), bytes_of(part.element)
                bits = b.cast("bitcast", result, VectorType(count, IntType(8 * size)))
                b.store(vector_of(b, [b.extract_element(bits, k) for k in range(count)]), to, count * size)
            self._wait_for_warp()
            self._copy(held.origin, memory, (down, across))

    def _wait_for_warp(self) -> None:
        self.kernel.grid.operations.subgroup_barrier(self.b, self.kernel.grid.warp)

    def _result_inside(self, at: tuple[Value, Value], run: Run) -> Value:
        """Elements of C; those outside of it are computed from operands of elements inside."""
        b, merged, shape, count = self.b, self.merged, self.shape, len(run.sums)
        row = b.umin(at[0], merged.rows - 1) if merged.rows % shape.rows else at[0]
        column = b.umin(at[1], merged.columns - count) if merged.columns % shape.columns else at[1]
        return self._result((row, column), count, partial(vector_of, b, run.sums))

    def _copy(self, origin: tuple[Value, Value], memory: WarpMemory, first: tuple[int, int]) -> None:
        """Copy a part to C, whose first row and column among the warp's are given."""
        b, kernel, part, by_rows = self.b, self.kernel, memory.part, self.gemm.c.is_row_major
        columns = min(self.columns, part.cols)
        start = [b.add(b.add(x, y), z) for x, y, z in zip(origin, memory.place, first, strict=True)]

        def body(number: Value) -> None:
            outer, inner = kernel.divided(number, part.cols // columns if by_rows else part.rows)
            row, column = (outer, b.mul(inner, columns)) if by_rows else (inner, outer)
            at = b.add(start[0], row), b.add(start[1], column)
            with self._if_inside(at):
                address = part.address(b, memory.base, row, column)
                loaded = b.load(VectorType(columns, part.element), address, columns * bytes_of(part.element))
                self._store(at, vector_of(b, [b.extract_element(loaded, k) for k in range(columns)]))

        kernel.for_each(part.rows * part.cols // columns, kernel.grid.warp, body, thread=memory.lane)

    @contextmanager
    def _if_inside(self, at: tuple[Value, Value]) -> Generator[None]:
        """Emit code that runs if elements are inside of C, by the row and column of the first one."""
        b, (row, column), merged = self.b, at, self.merged
        checks: list[Value] = [b.icmp("ult", row, merged.rows)] if merged.rows % self.shape.rows else []
        checks += [b.icmp("ult", column, merged.columns)] if merged.columns % self.shape.columns else []
        condition = all_of(b, checks)
        with nullcontext() if condition is None else b.if_block(condition, "in.matrix"):
            yield

    def _pointer(self, number: int, iteration: Value | None) -> Value:
        return self.merged.moved(self.kernel, self.kernel.pointers[number], number, iteration)

    def _result(self, at: tuple[Value, Value], count: int, sums: Callable[[], Value]) -> Value:
        """Adjacent elements of a row of C."""
        b, gemm = self.b, self.gemm
        iteration, *found = self.merged.found(self.kernel, *at)
        place = row_tile(count, *(as_index(b, number) for number in found))

        def product(place: ResultTile) -> Value:
            total = sums()
            if gemm.acc is not None:
                address = tile_address(b, gemm.acc, self._pointer(3, iteration), place)
                added = load_tile_vector(b, gemm.acc, address, place)
                opcode = "fadd" if isinstance(self.accumulator, FloatType) else "add"
                total = b.binary(opcode, total, convert_tile(b, added, self.accumulator, gemm.lhs_sign))
            return convert_tile(b, total, gemm.result, "s")

        leading, pointers = 4 if gemm.acc is not None else 3, len(self.merged.inner.steps)
        leaves = [self._pointer(number, iteration) for number in range(leading, pointers)]
        emitter = ExpressionEmitter(b, self.value, leaves, self.kernel.scalars, product)
        return convert_tile(b, emitter.result(place), gemm.c.element, "s")

    def _store(self, at: tuple[Value, Value], result: Value) -> None:
        """Store adjacent elements of a row of C."""
        assert isinstance(result.type, VectorType)
        iteration, *found = self.merged.found(self.kernel, *at)
        place = row_tile(result.type.count, *(as_index(self.b, number) for number in found))
        address = tile_address(self.b, self.gemm.c, self._pointer(0, iteration), place)
        store_tile_vector(self.b, self.gemm.c, address, place, result)
