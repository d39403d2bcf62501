"""The last columns of a product, too few for a register of their own: each element as a sum along K.

    N = 49, 16 lanes       C[:, 0:48] in register tiles, three registers a row
                           C[:, 48]   += A[i, k:k+16] * b[k:k+16], added up in the end

In register tiles one column costs as much as 16. The columns of B are copied to rows first; a block's rows of A are
read a second time, while they are in the caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, Type, VectorType
from tlx.ir.values import ConstInt, Value, const_int, zero
from tlx.lower.to_tiles.cost import Shape, product_cycles, register_tile
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.tiles import column_tile, convert, tile
from tlx.target import Target

_FOLDED: Final = 3
"""Cycles to add up the lanes of a sum and to store it, of several together."""
_COPIED: Final = 2
"""Cycles to copy an element of B."""


def last_columns(
    gemm: Gemm, target: Target, accumulator: Type, shape: Shape, *, spare: int, packs_a: bool = False
) -> int:
    """How many columns are summed along K, where that takes fewer cycles than a register for them; else none.

    Args:
        gemm: The product, of a B that is read as it lies.
        target: The machine.
        accumulator: Type of the sums.
        shape: All of C.
        spare: Registers that are needed for something else.
        packs_a: Whether A is packed, as `accumulator`, else read as it lies.
    """
    count = gemm.n % shape.lanes
    plain = gemm.is_float and gemm.is_repeatable and gemm.c.is_row_major and len(gemm.sums) == 1
    same = gemm.c.element == accumulator and (packs_a or gemm.a.element == accumulator)
    if not plain or not same or not gemm.a.is_row_major or not gemm.b.is_row_major or not count or gemm.n < shape.lanes:
        return 0

    def cycles(columns: int) -> float:
        part = Shape(shape.m, columns, shape.lanes, shape.resident)
        mr, nv = register_tile(part, target.registers, target.core, spare=spare)
        return gemm.k * product_cycles(target.core, part.m, part.vectors, mr, nv, resident=part.resident)

    along = cycles(gemm.n - count) + dot_cycles(gemm, target, count, shape.lanes)
    return count if along < cycles(gemm.n) and _most_rows(target, count) > 1 else 0


def dot_cycles(gemm: Gemm, target: Target, count: int, lanes: int) -> float:
    """About how many cycles sums along K take, for so many columns."""
    core = target.core
    step = max(count / core.products, (1 + count / 4) / core.loads)
    return gemm.m * (-(-gemm.k // lanes) * step + count * _FOLDED) + gemm.k * count * _COPIED


def _most_rows(target: Target, count: int) -> int:
    """Rows of so many sums that fit the registers, beside a part of each column and a part of a row."""
    return (target.registers - 1) // count - 1


@dataclass(eq=False)
class LastColumns:
    """Emits the sums.

    Attributes:
        b: Where code is emitted.
        gemm: The product.
        target: The machine.
        count: Columns.
        lanes: Elements of a register.
        pitch: Elements from a row of A to the next, where it lies or is packed.
        rows_of_b: The columns of B as rows, filled up with zeros to whole registers, once there is memory for them.
    """

    b: TensorBuilder
    gemm: Gemm
    target: Target
    count: int
    lanes: int
    pitch: int
    rows_of_b: Value | None = None

    @property
    def depth(self) -> int:
        """Elements of a copied column."""
        return -(-self.gemm.k // self.lanes) * self.lanes

    def copy(self, rhs: Value) -> None:
        """Copy the columns of B."""
        b, view = self.b, self.gemm.b
        full, rest = divmod(self.gemm.k, self.lanes)
        start = b.gep(view.element, rhs, (self.gemm.n - self.count) * view.col_stride)
        for column in range(self.count):
            if full:
                with b.loop(0, full, name="k") as loop:
                    self._copy_part(start, column, b.mul(loop.index, self.lanes), 0)
            if rest:
                self._copy_part(start, column, const_int(I64, full * self.lanes), self.lanes - rest)

    def _copy_part(self, start: Value, column: int, k: Value, padding: int) -> None:
        b, view, lanes = self.b, self.gemm.b, self.lanes
        source = b.gep(view.element, start, b.add(b.mul(k, view.row_stride), column * view.col_stride))
        token = b.tensor_load(source, column_tile(view.element, 1, lanes, (0, padding)), (0, view.row_stride), "b")
        element = self.gemm.c.element
        part = b.transpose(token, (0, 1), VectorType(lanes, view.element), "b.column")
        wide = convert(b, part, element, "f")
        assert self.rows_of_b is not None
        there = b.gep(element, self.rows_of_b, b.add(k, column * self.depth))
        b.tensor_store(there, b.typeinfo(wide, tile(element, 1, lanes), "b.row"))

    def tiles(self, pointers: tuple[Value, Value], rows: int, part: tuple[Value, int], *, first: bool) -> None:
        """The sums of `rows` rows over a part of K.

        Args:
            pointers: The first element of these rows in C, and of the part in A.
            rows: How many.
            part: The part's first position, and how many.
            first: Whether C has nothing yet to add to.
        """
        groups = -(-rows // _most_rows(self.target, self.count))
        done = 0
        for group in range(groups):
            height = (rows + group) // groups
            self._group(pointers, done, height, part, first=first)
            done += height

    def _group(
        self, pointers: tuple[Value, Value], row: int, rows: int, part: tuple[Value, int], *, first: bool
    ) -> None:
        b, gemm, lanes = self.b, self.gemm, self.lanes
        element, (start, size) = gemm.c.element, part
        full, rest = divmod(size, lanes)
        pitches = gemm.c.row_stride, self.pitch
        c, a = (b.gep(element, pointer, row * pitch) for pointer, pitch in zip(pointers, pitches, strict=True))
        sums: list[Value] = [zero(VectorType(lanes, element))] * (rows * self.count)
        if full:
            with b.loop(0, full, carry=sums, name="kd") as loop:
                loop.next(*self._step(a, rows, (start, b.mul(loop.index, lanes)), 0, loop.carried))
            sums = list(loop.results)
        if rest:
            sums = self._step(a, rows, (start, const_int(I64, full * lanes)), lanes - rest, sums)
        for column in range(self.count):
            lines = sums[column :: self.count]
            for top in range(0, rows, lanes):
                behind = top * gemm.c.row_stride + (gemm.n - self.count + column) * gemm.c.col_stride
                self._store(b.gep(element, c, behind), lines[top : top + lanes], first=first)

    def _step(self, a: Value, rows: int, at: tuple[Value, Value], padding: int, sums: list[Value]) -> list[Value]:
        """The sums, row by row, after a register along K, `at` a part's start and so much behind it.

        Its last `padding` positions are not there. Of a column of B those hold zeros, but at the end of a part of K,
        where the next part's may be infinite.
        """
        b, gemm, lanes = self.b, self.gemm, self.lanes
        element, (start, behind) = gemm.c.element, at
        k = b.add(start, behind)
        present = tile(element, 1, lanes, (0, padding))
        ends_in_zeros = isinstance(k, ConstInt) and k.value + lanes == self.depth == gemm.k + padding
        copied = tile(element, 1, lanes) if ends_in_zeros else present
        assert self.rows_of_b is not None
        columns = [
            b.tovector(
                b.tensor_load(b.gep(element, self.rows_of_b, b.add(k, column * self.depth)), copied, None, "b"), copied
            )
            for column in range(self.count)
        ]
        found: list[Value] = []
        for row in range(rows):
            address = b.gep(element, a, b.add(behind, row * self.pitch))
            part = b.tovector(b.tensor_load(address, present, None, "a"), present)
            before = sums[row * self.count : (row + 1) * self.count]
            found += [self._multiply_add(part, column, total) for column, total in zip(columns, before, strict=True)]
        return found

    def _multiply_add(self, part: Value, column: Value, total: Value) -> Value:
        """`total + part * column`, rounded once where that is an instruction: elsewhere it would be a call."""
        name = "llvm.fma" if self.target.fused else "llvm.fmuladd"
        return self.b.call_intrinsic(name, [total.type], total.type, [part, column, total], "dot")

    def _store(self, place: Value, lines: list[Value], *, first: bool) -> None:
        """Add up the lanes of each row's sum, of as many rows as there are lanes at most, and store a column."""
        b, view, lanes = self.b, self.gemm.c, self.lanes
        element, count = view.element, len(lines)
        tokens = [b.typeinfo(line, tile(element, 1, lanes), "line") for line in lines]
        joined = b.concat(tokens, 0, tile(element, count, lanes), "lines") if count > 1 else lines[0]
        token = b.typeinfo(joined, column_tile(element, lanes, count), "columns")
        total: Value = b.reduce("add", token, (lanes, 1), None, tile(element, 1, count))
        column = tile(element, count, 1)
        if not first:
            old = b.tovector(b.tensor_load(place, column, (0, view.row_stride), "c"), column)
            total = b.binary("fadd", old, total)
        b.tensor_store(place, b.typeinfo(total, column, "c"), (0, view.row_stride))
