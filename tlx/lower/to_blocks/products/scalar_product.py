"""Products of numbers: each thread accumulates a small tile, from operands in shared memory in the sums' type.

buffer 0 = stage 0
for stages             registers = the next stage, of memory
  for k of a stage     A is transposed in shared memory: a thread's rows are adjacent
    a0 .. a7           of row k of A^T        b0 .. b7    of row k of B
    sums += a x b      outer product
                       registers -> the other buffer; barrier
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import I32, FloatType, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import Value, const_int, const_vector, zero
from tlx.lower.to_blocks.kernel import GridKernel, all_of, as_index
from tlx.lower.to_blocks.products.epilogue import RowSegment, ThreadSums
from tlx.lower.to_blocks.products.k_positions import TileSums, terms_of
from tlx.lower.to_tiles.expression import MatrixView
from tlx.target.grid_unit import BlockShape
from tlx.target.instructions.dots import Sign

_CHUNK: Final = 4
"""Adjacent rows or columns of a thread, and elements that are copied at once. A thread's next rows are so far away that
threads side by side read other banks."""
_PADDING: Final = _CHUNK
"""Elements after each row of an operand in shared memory: stores of a transposed operand then meet other banks."""
_BUFFERS: Final = 2
_ACROSS: Final = 8
"""Threads of a warp beside each other."""


def operand_bytes(shape: BlockShape, accumulator: Type) -> int:
    """Bytes of shared memory of the operands."""
    return _BUFFERS * (shape.rows + shape.columns + 2 * _PADDING) * shape.depth * bytes_of(accumulator)


@dataclass(frozen=True, slots=True)
class _ScalarOperand:
    """A^T or B, K x rows or K x columns.

    Attributes:
        view: The matrix.
        number: 0: A; 1: B.
        extent: Rows of A, or columns of B, in a tile.
        count: All of them.
        origin: The first one of the tile, i32.
        sign: How elements are widened.
        at_once: Adjacent elements that a thread copies at once, along K or across.
    """

    view: MatrixView
    number: int
    extent: int
    count: int
    origin: Value
    sign: Sign
    at_once: int


@dataclass(eq=False)
class ScalarSums:
    """Emits the sums of a tile; see the module's description.

    Attributes:
        kernel: The kernel.
        tile: What it computes; the `warps` of its shape are threads here.
    """

    kernel: GridKernel
    tile: TileSums

    def emit(self, row: Value, column: Value) -> ThreadSums:
        """Compute the tile whose first row and column in C are given, i32."""
        kernel, shape, b = self.kernel, self.tile.shape, self.kernel.b
        height, width = shape.warp_rows, shape.warp_columns
        self.operands = self._operands(row, column)
        pitches = [operand.extent + _PADDING for operand in self.operands]
        starts = (0, shape.depth * pitches[0])
        buffer = shape.depth * sum(pitches)
        down, across = self._place_of_thread()
        chunks = min(height, _CHUNK), min(width, _CHUNK)
        firsts = b.mul(down, chunks[0]), b.mul(across, chunks[1])
        places = _offsets(height, shape.rows), _offsets(width, shape.columns)
        count, sums_of_thread = self.tile.positions.stages, height * width
        self._store_stage(self._loaded(const_int(I32, 0)), const_int(I32, 0), starts)
        kernel.grid.operations.barrier(b)
        carry = [const_int(I32, 0), *[zero(self.tile.accumulator)] * sums_of_thread]
        with b.loop(0, count, carry=carry, name="stage") as stage:
            at, *acc = stage.carried
            other = b.sub(const_int(I32, buffer), at)
            following = b.umin(b.add(b.cast("trunc", stage.index, I32), 1), count - 1)
            loaded = self._loaded(following)
            lines = [
                b.gep(self.tile.accumulator, self.tile.shared, as_index(b, b.add(b.add(at, start), first)))
                for start, first in zip(starts, firsts, strict=True)
            ]
            for k in range(shape.depth):
                x, y = (
                    self._line(b.gep(self.tile.accumulator, line, k * pitch), offsets)
                    for line, pitch, offsets in zip(lines, pitches, places, strict=True)
                )
                acc = [self._added(acc[i * width + j], x[i], y[j]) for i in range(height) for j in range(width)]
            self._store_stage(loaded, other, starts)
            kernel.grid.operations.barrier(b)
            stage.next(other, *acc)
        segments = tuple(
            RowSegment(places[0][i], places[1][j], i * width + j, chunks[1])
            for i in range(height)
            for j in range(0, width, chunks[1])
        )
        return ThreadSums((row, column), firsts, segments, lambda: stage.results[1:])

    def _place_of_thread(self) -> tuple[Value, Value]:
        """Row and column of the thread among those of the block; those of a warp share rows and columns of operands."""
        kernel, b, lanes = self.kernel, self.kernel.b, self.kernel.grid.warp_threads
        warp, lane = kernel.divided(kernel.thread, lanes)
        warp_row, warp_column = kernel.divided(warp, self.tile.shape.columns // self.tile.shape.warp_columns // _ACROSS)
        lane_row, lane_column = kernel.divided(lane, _ACROSS)
        row = b.add(b.mul(warp_row, lanes // _ACROSS), lane_row)
        return row, b.add(b.mul(warp_column, _ACROSS), lane_column)

    def _line(self, address: Value, places: Sequence[int]) -> list[Value]:
        """The elements at some distances from an address, of which chunks are adjacent."""
        b, values = self.kernel.b, list[Value]()
        chunk = min(len(places), _CHUNK)
        for place in places[::chunk]:
            at = b.gep(self.tile.accumulator, address, place)
            vector = b.load(VectorType(chunk, self.tile.accumulator), at, chunk * bytes_of(self.tile.accumulator))
            values += [b.extract_element(vector, k) for k in range(chunk)]
        return values

    def _added(self, total: Value, x: Value, y: Value) -> Value:
        b = self.kernel.b
        return b.fma(x, y, total) if isinstance(self.tile.accumulator, FloatType) else b.add(b.mul(x, y), total)

    # Copies ----------------------------------------------------------------------------------------------------

    def _operands(self, row: Value, column: Value) -> list[_ScalarOperand]:
        gemm, shape, merged = self.tile.merged.gemm, self.tile.shape, self.tile.merged
        a = gemm.a.transposed, 0, shape.rows, merged.rows, row, gemm.lhs_sign
        b = gemm.b, 1, shape.columns, merged.columns, column, gemm.rhs_sign
        return [_ScalarOperand(*facts, self._at_once(*facts[:4])) for facts in (a, b)]

    def _at_once(self, view: MatrixView, number: int, extent: int, count: int) -> int:
        """How many adjacent elements a thread copies at once."""
        merged, gemm, size = self.tile.merged, self.tile.merged.gemm, bytes_of(view.element)
        terms = terms_of(gemm)
        aligned = [self.kernel.iterations.alignments[number + 1], view.pitch * size]
        aligned += [term[number] * size for term in terms]
        lengths = [extent * self.tile.shape.depth // self.tile.shape.warps]
        if not view.is_row_major:
            lengths += [self.tile.positions.count, gemm.k]
        elif merged.inner.trips and merged.by_rows == (number == 0):
            lengths += [gemm.n if number else gemm.m]
        else:
            lengths += [count]
        fits = not any(n % (_CHUNK * size) for n in aligned) and not any(n % _CHUNK for n in lengths)
        return _CHUNK if fits else 1

    def _places(self, operand: _ScalarOperand) -> list[tuple[Value, Value]]:
        """Where the elements of a stage that the thread copies begin: positions along K and across."""
        kernel, depth, b = self.kernel, self.tile.shape.depth, self.kernel.b
        places: list[tuple[Value, Value]] = []
        for first in range(0, operand.extent * depth // operand.at_once, self.tile.shape.warps):
            number = b.add(kernel.thread, first)
            if operand.view.is_row_major:
                k, x = kernel.divided(number, operand.extent // operand.at_once)
                places.append((k, b.mul(x, operand.at_once)))
            elif operand.at_once == 1:
                x, k = kernel.divided(number, depth)
                places.append((k, x))
            else:  # 2 chunks of 16 lines: whole sectors of memory, other banks of shared memory
                rest, k = kernel.divided(number, 2)
                more, x = kernel.divided(rest, operand.extent)
                places.append((b.mul(b.add(b.mul(more, 2), k), operand.at_once), x))
        return places

    def _loaded(self, stage: Value) -> list[list[Value]]:
        """The thread's elements of a stage (i32), in the sums' type, by place."""
        first = self.tile.positions.first(stage, self.tile.shape.depth)
        b, values = self.kernel.b, list[list[Value]]()
        for operand in self.operands:
            view, number = operand.view, operand.number
            for k, x in self._places(operand):
                at, across = self.tile.positions.after(first, k), b.add(operand.origin, x)
                base = self.kernel.pointers[number + 1]
                inside = self._is_inside(operand, at.number, across)
                if self.tile.merged.by_rows == (number == 0):
                    iteration, *found = self.tile.merged.position_of(self.kernel, across, across)
                    base, across = self.tile.merged.moved(self.kernel, base, number + 1, iteration), found[number]
                if at.offsets is not None:
                    base = b.gep(view.element, base, at.offsets[number])
                address = b.gep(view.element, base, b.mul(as_index(b, at.k), view.row_stride))
                address = b.gep(view.element, address, b.mul(as_index(b, across), view.col_stride))
                values.append(self._checked_load(operand, address, inside))
        return values

    def _store_stage(self, values: list[list[Value]], buffer: Value, starts: Sequence[int]) -> None:
        """Write the thread's elements to the buffer at some distance (i32), in elements."""
        b, remaining, size = self.kernel.b, iter(values), bytes_of(self.tile.accumulator)
        for operand, start in zip(self.operands, starts, strict=True):
            pitch = operand.extent + _PADDING
            for k, x in self._places(operand):
                elements = next(remaining)
                at = b.add(b.add(buffer, start), b.add(b.mul(k, pitch), x))
                address = b.gep(self.tile.accumulator, self.tile.shared, as_index(b, at))
                if operand.view.is_row_major and len(elements) > 1:
                    vector: Value = const_vector([zero(self.tile.accumulator)] * len(elements))
                    for index, element in enumerate(elements):
                        vector = b.insert_element(vector, element, index)
                    b.store(vector, address, len(elements) * size)
                    continue
                for index, element in enumerate(elements):
                    b.store(element, b.gep(self.tile.accumulator, address, index * pitch), size)

    def _is_inside(self, operand: _ScalarOperand, k: Value, across: Value) -> Value | None:
        """Whether elements lie in the matrix, at a position of K and across; None if all do."""
        b, checks = self.kernel.b, list[Value]()
        if self.tile.positions.count % self.tile.shape.depth:
            checks.append(b.icmp("ult", k, self.tile.positions.count))
        if operand.count % operand.extent:
            checks.append(b.icmp("ult", across, operand.count))
        return all_of(b, checks)

    def _checked_load(self, operand: _ScalarOperand, address: Value, inside: Value | None) -> list[Value]:
        """Adjacent elements of an operand in the sums' type; 0 outside of the matrix."""
        b, element, count = self.kernel.b, operand.view.element, operand.at_once
        type_ = VectorType(count, element) if count > 1 else element
        align = count * bytes_of(element)
        if inside is None:
            loaded: Value = b.load(type_, address, align)
        else:
            before = b.block
            then, after = b.if_else_blocks(inside, ("element", "element.end"))
            b.at_end(then)
            value, end = b.load(type_, address, align), b.block
            b.branch(after)
            b.at_end(after)
            loaded = b.phi(type_, [(zero(type_), before), (value, end)], "element")
        elements = [b.extract_element(loaded, k) for k in range(count)] if count > 1 else [loaded]
        return [self._converted(value, operand.sign) for value in elements]

    def _converted(self, value: Value, sign: Sign) -> Value:
        b = self.kernel.b
        if value.type == self.tile.accumulator:
            return value
        if sign == "f":
            return b.cast("fpext", value, self.tile.accumulator)
        widens = bits_of(value.type) < bits_of(self.tile.accumulator)
        return b.cast(("zext" if sign == "u" else "sext") if widens else "trunc", value, self.tile.accumulator)


def _offsets(count: int, extent: int) -> list[int]:
    """How far a thread's rows or columns are from its first one: chunks, which are evenly spread over an extent."""
    chunk = min(count, _CHUNK)
    return [k // chunk * (extent * chunk // count) + k % chunk for k in range(count)]
