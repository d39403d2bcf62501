"""Products of numbers: each thread accumulates a small tile, from operands in shared memory in the sums' type.

    for k of a stage       A is transposed in shared memory: a thread's rows are adjacent
      a0 .. a7             of row k of A^T        b0 .. b7    of row k of B
      sums += a x b        outer product
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import I8, I32, FloatType, Type, bits_of, bytes_of
from tlx.ir.values import Value, zero
from tlx.lower.to_blocks.kernel import GridKernel, as_index
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm
from tlx.target.grid_unit import BlockShape, FragmentProduct
from tlx.target.hardware import Sign

_PADDING: Final = 8


@dataclass(eq=False)
class ScalarSums:
    """Emits the sums of a tile; see the module's description."""

    kernel: GridKernel
    gemm: Gemm
    shape: BlockShape
    fragments: FragmentProduct | None
    shared: Value
    accumulator: Type

    def emit(self, row: Value, column: Value, sums: MatrixView) -> None:
        """Compute the tile at a place of C into shared memory.

        Args:
            row, column: The tile's first row and column, i32.
            sums: Where the sums are put.
        """
        kernel, shape, b = self.kernel, self.shape, self.kernel.b
        height, width = shape.warp_rows, shape.warp_columns
        size = bytes_of(self.accumulator)
        self.pitch_a, self.pitch_b = shape.rows + _PADDING, shape.columns + _PADDING
        self.base_b = b.gep(I8, self.shared, shape.depth * self.pitch_a * size)
        down, across = kernel.divided(kernel.thread, shape.columns // width)
        first_row, first_column = b.mul(down, height), b.mul(across, width)
        line_a = b.gep(self.accumulator, self.shared, as_index(b, first_row))
        line_b = b.gep(self.accumulator, self.base_b, as_index(b, first_column))
        carry = [zero(self.accumulator)] * (height * width)
        with b.loop(0, -(-self.gemm.k // shape.depth), carry=carry, name="stage") as stage:
            kernel.grid.operations.barrier(b)
            start = b.mul(b.cast("trunc", stage.index, I32), shape.depth)
            self._copy(0, row, start)
            self._copy(1, column, start)
            kernel.grid.operations.barrier(b)
            with b.loop(0, shape.depth, carry=stage.carried, name="k") as k:
                a = self._line(b.gep(self.accumulator, line_a, b.mul(k.index, self.pitch_a)), height)
                c = self._line(b.gep(self.accumulator, line_b, b.mul(k.index, self.pitch_b)), width)
                k.next(*(self._added(k.carried[i * width + j], a[i], c[j]) for i in range(height) for j in range(width)))
            stage.next(*k.results)
        kernel.grid.operations.barrier(b)
        for i in range(height):
            at = b.add(b.mul(b.add(first_row, i), sums.row_stride), first_column)
            base = b.gep(self.accumulator, self.shared, as_index(b, at))
            for j in range(width):
                b.store(stage.results[i * width + j], b.gep(self.accumulator, base, j), size)

    def _line(self, address: Value, count: int) -> list[Value]:
        b = self.kernel.b
        size = bytes_of(self.accumulator)
        return [b.load(self.accumulator, b.gep(self.accumulator, address, i), size) for i in range(count)]

    def _added(self, total: Value, x: Value, y: Value) -> Value:
        b = self.kernel.b
        return b.fma(x, y, total) if isinstance(self.accumulator, FloatType) else b.add(b.mul(x, y), total)

    def _copy(self, operand: int, origin: Value, start: Value) -> None:
        """Copy a tile of A (transposed) or B to shared memory.

        Args:
            operand: 0 for A, 1 for B.
            origin: First row of A, or column of B.
            start: First position of K.
        """
        kernel, shape, b = self.kernel, self.shape, self.kernel.b
        view = self.gemm.b if operand else self.gemm.a.transposed
        sign = self.gemm.rhs_sign if operand else self.gemm.lhs_sign
        extent = shape.columns if operand else shape.rows
        base, pitch = (self.base_b, self.pitch_b) if operand else (self.shared, self.pitch_a)
        source = kernel.pointers[1 + operand]

        def body(number: Value) -> None:
            if view.is_row_major:
                k, x = kernel.divided(number, extent)
            else:
                x, k = kernel.divided(number, shape.depth)
            row, column = b.add(start, k), b.add(origin, x)
            address = b.gep(view.element, source, b.mul(as_index(b, row), view.row_stride))
            address = b.gep(view.element, address, b.mul(as_index(b, column), view.col_stride))
            value = self._checked_load(address, view, (row, column), extent, sign)
            at = b.add(b.mul(k, pitch), x)
            b.store(value, b.gep(self.accumulator, base, as_index(b, at)), bytes_of(self.accumulator))

        kernel.for_each(extent * shape.depth, shape.warps, body, unrolled=True)

    def _checked_load(
        self, address: Value, view: MatrixView, at: tuple[Value, Value], extent: int, sign: Sign
    ) -> Value:
        """An element of an operand in the sums' type; 0 outside of the matrix."""
        b, checks = self.kernel.b, list[Value]()
        if view.rows % self.shape.depth:
            checks.append(b.icmp("ult", at[0], view.rows))
        if view.cols % extent:
            checks.append(b.icmp("ult", at[1], view.cols))
        align = bytes_of(view.element)
        if not checks:
            return self._converted(b.load(view.element, address, align), sign)
        both = checks[0] if len(checks) == 1 else b.binary("and", *checks)
        before = b.block
        inside, after = b.if_else_blocks(both, ("element", "element.end"))
        b.at_end(inside)
        value = self._converted(b.load(view.element, address, align), sign)
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
