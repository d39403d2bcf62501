"""Products of numbers: each thread accumulates a small tile, from operands in shared memory in the sums' type.

registers = stage 0
for stages             barrier; registers -> shared memory; barrier; registers = the next stage
  for k of a stage     A is transposed in shared memory: a thread's rows are adjacent
    a0 .. a7           of row k of A^T        b0 .. b7    of row k of B
    sums += a x b      outer product
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import I8, I32, FloatType, Type, bits_of, bytes_of
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_blocks.kernel import GridKernel, all_of, as_index
from tlx.lower.to_blocks.merging import MergedProduct
from tlx.lower.to_blocks.positions import Positions
from tlx.lower.to_tiles.expression import MatrixView
from tlx.target.grid_unit import BlockShape
from tlx.target.hardware import Sign

_PADDING: Final = 8
"""Elements after each row of an operand in shared memory: stores of a transposed operand then meet other banks."""
_UNROLLED: Final = 4
"""Positions of K in an iteration of the inner loop."""
_CHUNK: Final = 4
"""Adjacent rows or columns of a thread. Its next ones are so far away that threads side by side read other banks."""


def operand_bytes(shape: BlockShape, accumulator: Type) -> int:
    """Bytes of shared memory of the operands of a stage."""
    return (shape.rows + shape.columns + 2 * _PADDING) * shape.depth * bytes_of(accumulator)


@dataclass(eq=False)
class ScalarSums:
    """Emits the sums of a tile; see the module's description.

    Attributes:
        kernel: The kernel.
        merged: The product.
        shape: The block's tile, whose `warps` are threads here.
        shared: The block's shared memory.
        accumulator: Element type of the sums.
        positions: The positions along K.
    """

    kernel: GridKernel
    merged: MergedProduct
    shape: BlockShape
    shared: Value
    accumulator: Type
    positions: Positions

    def emit(self, row: Value, column: Value, sums: MatrixView) -> None:
        """Compute the tile at a place of C into shared memory.

        Args:
            row: The tile's first row, i32.
            column: Its first column.
            sums: Where the sums are put.
        """
        kernel, shape, b = self.kernel, self.shape, self.kernel.b
        height, width = shape.warp_rows, shape.warp_columns
        size = bytes_of(self.accumulator)
        self.pitch_a, self.pitch_b = shape.rows + _PADDING, shape.columns + _PADDING
        self.base_b = b.gep(I8, self.shared, shape.depth * self.pitch_a * size)
        down, across = kernel.divided(kernel.thread, shape.columns // width)
        chunks = min(height, _CHUNK), min(width, _CHUNK)
        first_row, first_column = b.mul(down, chunks[0]), b.mul(across, chunks[1])
        rows, columns = _offsets(height, shape.rows), _offsets(width, shape.columns)
        line_a = b.gep(self.accumulator, self.shared, as_index(b, first_row))
        line_b = b.gep(self.accumulator, self.base_b, as_index(b, first_column))
        count = self.positions.stages
        count_of_sums = height * width
        carry = [zero(self.accumulator)] * count_of_sums + self._loaded(const_int(I32, 0), row, column)
        with b.loop(0, count, carry=carry, name="stage") as stage:
            acc, loaded = stage.carried[:count_of_sums], stage.carried[count_of_sums:]
            kernel.grid.operations.barrier(b)
            self._store_stage(loaded)
            kernel.grid.operations.barrier(b)
            following = b.umin(b.add(b.cast("trunc", stage.index, I32), 1), count - 1)
            loaded = self._loaded(following, row, column)
            with b.loop(0, shape.depth, _UNROLLED, carry=acc, name="k") as loop:
                acc = loop.carried
                for k in range(_UNROLLED):
                    at = b.add(loop.index, k)
                    a = self._line(b.gep(self.accumulator, line_a, b.mul(at, self.pitch_a)), rows)
                    c = self._line(b.gep(self.accumulator, line_b, b.mul(at, self.pitch_b)), columns)
                    acc = [self._added(acc[i * width + j], a[i], c[j]) for i in range(height) for j in range(width)]
                loop.next(*acc)
            stage.next(*loop.results, *loaded)
        kernel.grid.operations.barrier(b)
        for i in range(height):
            at = b.add(b.mul(b.add(first_row, rows[i]), sums.row_stride), first_column)
            base = b.gep(self.accumulator, self.shared, as_index(b, at))
            for j in range(width):
                b.store(stage.results[i * width + j], b.gep(self.accumulator, base, columns[j]), size)

    def _line(self, address: Value, places: Sequence[int]) -> list[Value]:
        b = self.kernel.b
        size = bytes_of(self.accumulator)
        return [b.load(self.accumulator, b.gep(self.accumulator, address, place), size) for place in places]

    def _added(self, total: Value, x: Value, y: Value) -> Value:
        b = self.kernel.b
        return b.fma(x, y, total) if isinstance(self.accumulator, FloatType) else b.add(b.mul(x, y), total)

    def _operands(self) -> list[tuple[MatrixView, int, Sign]]:
        """A transposed, and B: K x rows, K x columns; the extent of a tile, and the sign."""
        gemm, shape = self.merged.gemm, self.shape
        return [(gemm.a.transposed, shape.rows, gemm.lhs_sign), (gemm.b, shape.columns, gemm.rhs_sign)]

    def _places(self, view: MatrixView, extent: int) -> list[tuple[Value, Value]]:
        """The positions along K and across of the elements of a stage that the thread copies."""
        kernel, shape, b = self.kernel, self.shape, self.kernel.b
        places: list[tuple[Value, Value]] = []
        for first in range(0, extent * shape.depth, shape.warps):
            number = b.add(kernel.thread, first)
            if view.is_row_major:
                places.append(kernel.divided(number, extent))
            else:
                x, k = kernel.divided(number, shape.depth)
                places.append((k, x))
        return places

    def _loaded(self, stage: Value, row: Value, column: Value) -> list[Value]:
        """The thread's elements of a stage, in the sums' type.

        Args:
            stage: The stage, i32.
            row: The first row of A.
            column: The first column of B.
        """
        b, values = self.kernel.b, list[Value]()
        first = self.positions.first(stage, self.shape.depth)
        operands = zip(self._operands(), self.kernel.pointers[1:3], (row, column), strict=True)
        for number, ((view, extent, sign), pointer, origin) in enumerate(operands):
            for k, x in self._places(view, extent):
                at, across = self.positions.after(first, k), b.add(origin, x)
                base = pointer
                if self.merged.by_rows == (number == 0):
                    iteration, *found = self.merged.found(self.kernel, across, across)
                    base, across = self.merged.moved(self.kernel, base, number + 1, iteration), found[number]
                if at.offsets is not None:
                    base = b.gep(view.element, base, at.offsets[number])
                address = b.gep(view.element, base, b.mul(as_index(b, at.k), view.row_stride))
                address = b.gep(view.element, address, b.mul(as_index(b, across), view.col_stride))
                values.append(self._checked_load(address, view.element, (at.number, b.add(origin, x)), number, sign))
        return values

    def _store_stage(self, values: list[Value]) -> None:
        """Write the thread's elements to shared memory."""
        b, remaining = self.kernel.b, iter(values)
        bases = (self.shared, self.pitch_a), (self.base_b, self.pitch_b)
        for (view, extent, _), (base, pitch) in zip(self._operands(), bases, strict=True):
            for k, x in self._places(view, extent):
                at = b.gep(self.accumulator, base, as_index(b, b.add(b.mul(k, pitch), x)))
                b.store(next(remaining), at, bytes_of(self.accumulator))

    def _checked_load(self, address: Value, element: Type, at: tuple[Value, Value], operand: int, sign: Sign) -> Value:
        """An element of an operand (0: A, 1: B) in the sums' type; 0 outside of the matrix."""
        b, checks = self.kernel.b, list[Value]()
        if self.positions.count % self.shape.depth:
            checks.append(b.icmp("ult", at[0], self.positions.count))
        count, extent = ((self.merged.rows, self.shape.rows), (self.merged.columns, self.shape.columns))[operand]
        if count % extent:
            checks.append(b.icmp("ult", at[1], count))
        align = bytes_of(element)
        both = all_of(b, checks)
        if both is None:
            return self._converted(b.load(element, address, align), sign)
        before = b.block
        inside, after = b.if_else_blocks(both, ("element", "element.end"))
        b.at_end(inside)
        value = self._converted(b.load(element, address, align), sign)
        end = b.block
        b.branch(after)
        b.at_end(after)
        return b.phi(self.accumulator, [(zero(self.accumulator), before), (value, end)], "element")

    def _converted(self, value: Value, sign: Sign) -> Value:
        b = self.kernel.b
        if value.type == self.accumulator:
            return value
        if sign == "f":
            return b.cast("fpext", value, self.accumulator)
        widens = bits_of(value.type) < bits_of(self.accumulator)
        return b.cast(("zext" if sign == "u" else "sext") if widens else "trunc", value, self.accumulator)


def _offsets(count: int, extent: int) -> list[int]:
    """How far a thread's rows or columns are from its first one: chunks, which are evenly spread over an extent."""
    chunk = min(count, _CHUNK)
    return [k // chunk * (extent * chunk // count) + k % chunk for k in range(count)]
