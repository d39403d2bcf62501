"""Epilogues of products: threads compute elements of C from sums that stay in their registers.

    f(sums, bias, ...)     each thread, of its own sums: segments of adjacent columns
    converted to C's type
    -> shared memory       of the warp, without waiting for other warps: some rows and columns at a time
    -> C                   each thread 16 adjacent bytes of a row

Sums of fragments are segments of two columns, which are a quarter or half of what memory is accessed by: hence the way
through shared memory. Segments of four, those of products of numbers, are stored directly.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Final

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import FloatType, IntType, Type, VectorType, bytes_of
from tlx.ir.values import Keyword, Value
from tlx.lower.to_blocks.kernel import GridKernel, all_of, as_index, row_tile, vector_columns
from tlx.lower.to_blocks.products.implicit_gemm import MergedProduct
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter, NodeValues
from tlx.lower.to_tiles.emit.tiles import (
    ResultTile,
    convert_tile,
    load_tile_vector,
    tile_address,
)
from tlx.lower.to_tiles.expression import Expression, ProductLeaf
from tlx.lower.to_tiles.problem import gemm_accumulator_type
from tlx.target.grid_unit import CHUNK_BYTES, LINE_BYTES, BlockShape

_PADDED_ELEMENTS: Final = 8
"""Elements after each row of a part: with at least 16 bytes, rows stay aligned for `vector_columns`."""


def vector_of(b: TensorBuilder, values: Sequence[Value]) -> Value:
    """Values as a vector."""
    vector: Value = Keyword(VectorType(len(values), values[0].type), "undef")
    for number, value in enumerate(values):
        vector = b.insert_element(vector, value, number)
    return vector


def store_vector(b: TensorBuilder, vector: Value, address: Value, alignment: int) -> None:
    """Store a vector, the elements of which may be computed one by one."""
    assert isinstance(vector.type, VectorType)
    count, element = vector.type.count, vector.type.element
    bits = b.cast("bitcast", vector, VectorType(count, IntType(8 * bytes_of(element))))
    b.store(vector_of(b, [b.extract_element(bits, k) for k in range(count)]), address, alignment)


@dataclass(frozen=True, slots=True)
class RowSegment:
    """Sums that a thread holds and that are adjacent in a row.

    Attributes:
        row, column: How far the first one is from the thread's first sum.
        first: Its number among the sums of the thread.
        count: How many.
    """

    row: int
    column: int
    first: int
    count: int

    def split(self, count: int) -> list[RowSegment]:
        """Parts of it, of at most some sums."""
        count = min(count, self.count)
        return [RowSegment(self.row, self.column + k, self.first + k, count) for k in range(0, self.count, count)]

    def values(self, b: TensorBuilder, sums: Sequence[Value]) -> Value:
        """A vector of its sums, given those of the thread."""
        return vector_of(b, sums[self.first : self.first + self.count])


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

    @classmethod
    def of(cls, element: Type, rows: int, cols: int) -> ResultPart:
        """As many columns as a line of memory has, at most those of the sums."""
        return cls(element, rows, min(cols, LINE_BYTES // bytes_of(element)))

    @property
    def row_stride(self) -> int:
        """Elements from a row to the next."""
        return self.cols + max(_PADDED_ELEMENTS, CHUNK_BYTES // bytes_of(self.element))

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return self.rows * self.row_stride * bytes_of(self.element)

    def address(self, b: TensorBuilder, base: Value, row: Value, column: Value) -> Value:
        """The address of an element, whose row and column are i32."""
        return b.gep(self.element, base, as_index(b, b.add(b.mul(row, self.row_stride), column)))


@dataclass(frozen=True, slots=True)
class WarpMemory:
    """Shared memory of a warp.

    Attributes:
        part: What it has room for.
        base: Its address.
        position: First row and column of the warp's sums in the tile, i32.
        lane: The thread's number in the warp, i32.
    """

    part: ResultPart
    base: Value
    position: tuple[Value, Value]
    lane: Value


@dataclass(frozen=True, slots=True)
class ThreadSums:
    """A thread's sums of a tile.

    Attributes:
        origin: First row and column of the tile in C, i32.
        position: Those of the thread's first sum in the tile.
        segments: The sums by rows.
        complete: Emits what waits for the sums, and returns them.
        memory: Memory of the warp, if elements of C should pass through it.
    """

    origin: tuple[Value, Value]
    position: tuple[Value, Value]
    segments: tuple[RowSegment, ...]
    complete: Callable[[], Sequence[Value]]
    memory: WarpMemory | None = None

    def at(self, b: TensorBuilder, segment: RowSegment) -> tuple[Value, Value]:
        """Row and column of a segment in C."""
        (row, column), (down, across) = self.origin, self.position
        return b.add(b.add(row, down), segment.row), b.add(b.add(column, across), segment.column)


@dataclass(frozen=True, slots=True)
class _PartSegments:
    """The segments of a part of C.

    Attributes:
        row, column: How far its first element is from the warp's first one.
        segments: The segments.
    """

    row: int
    column: int
    segments: Sequence[RowSegment]


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

    def store(self, thread_sums: ThreadSums) -> None:
        """Compute and store elements of C from a thread's sums."""
        if thread_sums.memory is not None:
            self._store_by_warp(thread_sums, thread_sums.memory)
            return
        sums = thread_sums.complete()
        for segment in thread_sums.segments:
            for piece in segment.split(self.columns):
                self.store_columns(thread_sums.at(self.b, piece), piece.count, partial(piece.values, self.b, sums))

    def store_columns(self, at: tuple[Value, Value], count: int, sums: Callable[[], Value]) -> None:
        """Compute and store adjacent elements of a row of C, if they are inside.

        Args:
            at: Row and column of the first one, i32.
            count: How many: a divisor of `columns`.
            sums: Emits their sums, a vector.
        """
        with self._if_inside(at):
            self._store(at, self._result(at, count, sums))

    def _store_by_warp(self, thread_sums: ThreadSums, memory: WarpMemory) -> None:
        """Compute and store elements of C that pass through the memory of the warp.

        Operands that do not depend on the row are loaded one part ahead: those of the first part before the sums are
        complete.
        """
        b, parts = self.b, self._parts(thread_sums.segments, memory.part)
        row, column = (b.sub(mine, first) for mine, first in zip(thread_sums.position, memory.position, strict=True))
        start = memory.part.address(b, memory.base, row, column)
        operands = self._operands(thread_sums, parts[0])
        sums = thread_sums.complete()
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            results = [
                self._result(
                    self._nearest(thread_sums.at(b, segment), segment.count),
                    segment.count,
                    partial(segment.values, b, sums),
                    operands.get(segment.column),
                )
                for segment in part.segments
            ]
            operands = self._operands(thread_sums, following) if following is not None else {}
            self._wait_for_warp()
            for segment, result in zip(part.segments, results, strict=True):
                self._put(result, memory.part, start, segment.row - part.row, segment.column - part.column)
            self._wait_for_warp()
            self._copy(thread_sums.origin, memory, part)

    def _parts(self, segments: Sequence[RowSegment], room: ResultPart) -> list[_PartSegments]:
        """The segments, of one column each if C has an odd number of them, by the parts of C that they are in."""
        parts = dict[tuple[int, int], list[RowSegment]]()
        most = self.gemm.n & -self.gemm.n
        for segment in (piece for whole in segments for piece in whole.split(most)):
            first = segment.row // room.rows * room.rows, segment.column // room.cols * room.cols
            parts.setdefault(first, []).append(segment)
        return [_PartSegments(*first, found) for first, found in parts.items()]

    def _operands(self, thread_sums: ThreadSums, part: _PartSegments) -> dict[int, NodeValues]:
        """The nodes that do not depend on the row, such as a bias, by the columns of segments."""
        found = dict[int, NodeValues]()
        if self.merged.inner.trips:  # they may be different matrices for each row
            return found
        for segment in part.segments:
            if segment.column not in found:
                place = self._place(self._nearest(thread_sums.at(self.b, segment), segment.count), segment.count)
                found[segment.column] = self._emitter(None).compute(place, nodes=self.value.row_invariant)
        return found

    def _put(self, result: Value, part: ResultPart, start: Value, row: int, column: int) -> None:
        """Store elements of C to the memory of the warp, some rows and columns after the thread's first one."""
        assert isinstance(result.type, VectorType)
        to = self.b.gep(part.element, start, row * part.row_stride + column)
        store_vector(self.b, result, to, result.type.count * bytes_of(part.element))

    def _wait_for_warp(self) -> None:
        self.kernel.grid.operations.subgroup_barrier(self.b, self.kernel.grid.warp_threads)

    def _nearest(self, at: tuple[Value, Value], count: int) -> tuple[Value, Value]:
        """The row and column of adjacent elements, or of the nearest ones inside of C, whose operands can be loaded."""
        b, merged, shape = self.b, self.merged, self.shape
        row = b.umin(at[0], merged.rows - 1) if merged.rows % shape.rows else at[0]
        column = b.umin(at[1], merged.columns - count) if merged.columns % shape.columns else at[1]
        return row, column

    def _copy(self, origin: tuple[Value, Value], memory: WarpMemory, segments: _PartSegments) -> None:
        """Copy a part from the memory of the warp to C."""
        b, kernel, part, by_rows = self.b, self.kernel, memory.part, self.gemm.c.is_row_major
        columns, first = min(self.columns, part.cols), (segments.row, segments.column)
        start = [b.add(b.add(x, y), z) for x, y, z in zip(origin, memory.position, first, strict=True)]
        lines, length = part.rows, part.cols // columns
        if not by_rows:
            lines, length = length, lines
        width = min(length, kernel.grid.warp_threads)  # a thread's places in a line are the same in all lines

        def body(number: Value) -> None:
            line, first = kernel.divided(number, width)
            for inner in (b.add(first, distance) for distance in range(0, length, width)):
                row, column = (line, b.mul(inner, columns)) if by_rows else (inner, line)
                at = b.add(start[0], row), b.add(start[1], column)
                with self._if_inside(at):
                    address = part.address(b, memory.base, row, column)
                    loaded = b.load(VectorType(columns, part.element), address, columns * bytes_of(part.element))
                    self._store(at, loaded)

        kernel.for_each(lines * width, kernel.grid.warp_threads, body, thread=memory.lane)

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

    def _place(self, at: tuple[Value, Value], count: int) -> ResultTile:
        """The place of adjacent elements in C of their iteration."""
        _, *found = self.merged.position_of(self.kernel, *at)
        return row_tile(count, *(as_index(self.b, number) for number in found))

    def _emitter(
        self, iteration: Value | None, product: Callable[[ResultTile], Value] | None = None
    ) -> ExpressionEmitter:
        leading, pointers = 4 if self.gemm.acc is not None else 3, len(self.merged.inner.steps)
        leaves = [self._pointer(number, iteration) for number in range(leading, pointers)]
        return ExpressionEmitter(self.b, self.value, leaves, self.kernel.scalars, product)

    def _result(
        self, at: tuple[Value, Value], count: int, sums: Callable[[], Value], known: NodeValues | None = None
    ) -> Value:
        """Adjacent elements of a row of C, some of whose nodes may be known."""
        b, gemm = self.b, self.gemm
        iteration, *_ = self.merged.position_of(self.kernel, *at)

        def product(result_tile: ResultTile) -> Value:
            total = sums()
            if gemm.acc is not None:
                address = tile_address(b, gemm.acc, self._pointer(3, iteration), result_tile)
                added = load_tile_vector(b, gemm.acc, address, result_tile)
                opcode = "fadd" if isinstance(self.accumulator, FloatType) else "add"
                total = b.binary(opcode, total, convert_tile(b, added, self.accumulator, gemm.lhs_sign))
            return convert_tile(b, total, gemm.result, "s")

        result = self._emitter(iteration, product).result(self._place(at, count), known)
        return convert_tile(b, result, gemm.c.element, "s")

    def _store(self, at: tuple[Value, Value], result: Value) -> None:
        """Store adjacent elements of a row of C."""
        assert isinstance(result.type, VectorType)
        iteration, *_ = self.merged.position_of(self.kernel, *at)
        place = self._place(at, result.type.count)
        address = tile_address(self.b, self.gemm.c, self._pointer(0, iteration), place)
        store_vector(self.b, result, address, self._alignment(result.type.count))

    def _alignment(self, count: int) -> int:
        """The alignment of some adjacent elements of C, the first of which is at a multiple of their number.

        LLVM would have to derive it from numbers of iterations, rows and columns, and often cannot: then it stores
        element by element.
        """
        c, steps = self.gemm.c, self.merged.inner.steps[0]
        size = bytes_of(c.element)
        return gcd(count * size, self.kernel.iterations.alignments[0], c.pitch * size, *steps)
