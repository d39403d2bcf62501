"""The N tail of a product: last columns as sums along K, or as pairs of positions of K in a register.

The last columns of a product, too few for a register of their own: each element as a sum along K.

    N = 49, 16 lanes       C[:, 0:48] in register tiles, three registers a row
                           C[:, 48]   += A[i, k:k+16] * b[k:k+16], added up in the end

In register tiles one column costs as much as 16. The columns of B are copied to rows first; a block's rows of A are
read a second time, while they are in the caches.

The last columns of a product, at most half a register of them: two positions of K fill the other half.

    16 lanes, 8 columns    sums of a row   c0 c0' c1 c1' ... c7 c7'     of even and of odd positions of K
    B, pairs of its rows   b00 b10 b01 b11 ... b07 b17
    A, a pair              a0 a1 a0 a1 ... a0 a1                        loaded so, by no port that multiplies

    C[i, n:] = c0 + c0', c1 + c1', ...                                  added up in the end, two rows at a time

In register tiles these columns take as many multiply-adds as a whole register.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I64, Type, VectorType
from tlx.ir.values import ConstInt, Value, const_int, zero
from tlx.lower.to_tiles.emit.copy.tiles import TileCopy, in_chunks
from tlx.lower.to_tiles.emit.kernel import column_tile, convert_tile, tile
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.problem.view import MatrixView
from tlx.lower.to_tiles.select.cost import dot_product_rows, pairs_stay_in_registers
from tlx.lower.to_tiles.select.recipe import PAIR, EqualTiles
from tlx.target.target import Target


@dataclass(eq=False)
class DotProductColumns:
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
        b, view, lanes, element = self.b, self.gemm.b, self.lanes, self.gemm.c.element
        assert self.rows_of_b is not None
        rows, start = self.rows_of_b, b.gep(view.element, rhs, (self.gemm.n - self.count) * view.col_stride)
        copy = TileCopy(
            b, view.element, view.row_stride, False, element, lambda v: convert_tile(b, v, element, "f"), "b"
        )
        for column in range(self.count):

            def part(number: Value, size: int, column: int = column) -> None:
                k = b.mul(number, lanes)
                at = b.gep(view.element, start, b.add(b.mul(k, view.row_stride), column * view.col_stride))
                token = copy.load(at, (1, lanes), (0, lanes - size))
                copy.store(token, b.gep(element, rows, b.add(k, column * self.depth)))

            in_chunks(b, self.gemm.k, lanes, "k", part)

    def tiles(self, pointers: tuple[Value, Value], rows: int, part: tuple[Value, int], *, first: bool) -> None:
        """The sums of `rows` rows over a part of K.

        Args:
            pointers: The first element of these rows in C, and of the part in A.
            rows: How many.
            part: The part's first position, and how many.
            first: Whether C has nothing yet to add to.
        """
        groups = -(-rows // dot_product_rows(self.target, self.count))
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


_PERMUTED_AXES: Final = (0, 1, 3, 2, 4)
_ROWS_AT_ONCE: Final = 8
"""Rows of B that are interleaved together."""


_FOLDED_AT_ONCE: Final = 2
"""Rows whose sums of even and of odd positions are added up by the same instructions."""
_MAX_UNROLLED_PRODUCTS: Final = 256
"""Multiply-adds up to which sums are written out."""


@dataclass(eq=False)
class PairedColumns:
    """Emits them.

    Attributes:
        b: Where code is emitted.
        view: B.
        accumulator: Type of the sums.
        columns: The columns.
        target: The machine.
        packs_a: Whether A is packed, and its rows filled up with zeros.
        is_once: Whether a single row tile meets them, of an even number of rows.
        panel: Pairs of rows of B, once there is memory for them.
        lines: The same in registers, where they are few.
        first: Where B's columns begin, where lines are made as they are multiplied.
    """

    b: TensorBuilder
    view: MatrixView
    accumulator: Type
    columns: EqualTiles
    target: Target
    packs_a: bool
    is_once: bool = False
    panel: Value | None = None
    lines: list[Value] = field(default_factory=list[Value])
    first: Value | None = None

    @property
    def lanes(self) -> int:
        """Sums of a row."""
        return self.columns.size * PAIR

    @property
    def steps(self) -> int:
        """Pairs of positions of K."""
        return -(-self.view.rows // PAIR)

    @property
    def _full(self) -> int:
        """Steps whose both positions are there to be read: behind the last row of A is nothing."""
        return self.steps - (self.view.rows % PAIR and not self.packs_a)

    @property
    def are_few(self) -> bool:
        """Whether pairs of rows stay in registers."""
        return pairs_stay_in_registers(self.steps, self.target)

    def pack(self, rhs: Value) -> None:
        """Interleave pairs of rows of B, given where it begins; a row that is not there is zero."""
        b, view = self.b, self.view
        start = b.gep(view.element, rhs, self.columns.start * view.col_stride)
        if self.are_few and self.is_once:
            self.first = start
            return
        if self.are_few:
            pairs = self._pairs(start, const_int(I64, 0), view.rows)
            spans = [range(n * self.lanes, (n + 1) * self.lanes) for n in range(self.steps)]
            self.lines = [b.shuffle(pairs, None, span, "b.pair") for span in spans]
            return
        assert self.panel is not None
        panel, element = self.panel, self.accumulator

        def part(number: Value, count: int) -> None:
            row = b.mul(number, _ROWS_AT_ONCE)
            there = b.gep(element, panel, b.mul(row, self.columns.size))
            type_ = tile(element, -(-count // PAIR), self.lanes)
            b.tensor_store(there, b.typeinfo(self._pairs(start, row, count), type_, "b.pairs"))

        in_chunks(b, view.rows, _ROWS_AT_ONCE, "k", part)
        b.keep(self.panel)

    def _pairs(self, start: Value, row: Value, count: int) -> Value:
        """Rows of B from one on, interleaved; a row that is not there is zero."""
        b, view, element, columns = self.b, self.view, self.accumulator, self.columns
        steps = -(-count // PAIR)
        type_ = tile(view.element, steps * PAIR, columns.size, (steps * PAIR - count, columns.padding))
        is_run = view.row_stride == columns.size and not type_.is_padded
        if is_run:
            type_ = tile(view.element, steps, self.lanes)
        place = b.gep(view.element, start, b.mul(row, view.row_stride))
        token = b.tensor_load(place, type_, (0, 0 if is_run else view.row_stride), "b")
        wide = convert_tile(b, b.tovector(token, type_, "b.rows"), element, "f")
        result = tile(element, steps, self.lanes)
        if is_run:  # a register holds a pair
            seen = TensorType.dense(element, (steps, 1, PAIR, columns.size, 1))
            return b.reshape_permute(
                b.typeinfo(wide, seen, "b.rows"), _PERMUTED_AXES, result.shape, result.vector, "b.pairs"
            )
        token = b.typeinfo(wide, tile(element, steps * PAIR, columns.size), "b.rows")
        return b.reshape_block(token, (0,), (PAIR,), result.vector, "b.pairs")

    def total(self, a: Value, pitch: int, rows: int) -> Value:
        """The flattened tile of sums of so many rows of A, given where the first one begins."""
        if self.first is not None:
            return self._by_rows(self.first, a, pitch, rows)
        b, steps = self.b, self.steps
        sums: list[Value] = [zero(VectorType(self.lanes, self.accumulator))] * rows
        looped = 0 if self.are_few or steps * rows <= _MAX_UNROLLED_PRODUCTS else self._full
        if looped:
            with b.loop(0, looped, carry=sums, name="kk") as loop:
                loop.next(*self._step(a, pitch, loop.index, loop.carried))
            sums = list(loop.results)
        for number in range(looped, steps):
            sums = self._step(a, pitch, const_int(I64, number), sums, missing=int(number >= self._full))
        return self._folded(sums)

    def _by_rows(self, first: Value, a: Value, pitch: int, rows: int) -> Value:
        """The same, two rows from end to end, then the next two; pairs of B are made for the first ones.

        Sums are added up while those of the rows behind them are multiplied: 8x8x8 half takes 38.2 cycles so, and 39.1
        where all rows end together (Emerald Rapids).
        """
        b, columns = self.b, self.columns.size
        starts = range(0, self.view.rows, PAIR)
        parts: list[Value] = []
        for row in range(0, rows, _FOLDED_AT_ONCE):
            place = b.gep(self.accumulator, a, row * pitch)
            sums: list[Value] = [zero(VectorType(self.lanes, self.accumulator))] * _FOLDED_AT_ONCE
            for number, start in enumerate(starts):
                if not row:
                    self.lines.append(self._pairs(first, const_int(I64, start), min(PAIR, self.view.rows - start)))
                sums = self._step(place, pitch, const_int(I64, number), sums, missing=int(number >= self._full))
            parts.append(self._folded(sums))
        if len(parts) == 1:
            return parts[0]
        two = tile(self.accumulator, _FOLDED_AT_ONCE, columns)
        return b.concat([b.typeinfo(p, two, "rows") for p in parts], 0, tile(self.accumulator, rows, columns), "rows")

    def _step(self, a: Value, pitch: int, number: Value, sums: list[Value], *, missing: int = 0) -> list[Value]:
        """The sums after a pair of positions, of which the second may be missing."""
        b, element = self.b, self.accumulator
        pair = tile(element, 1, PAIR, (0, missing))
        rhs = self._line(number)
        found: list[Value] = []
        for row, total in enumerate(sums):
            place = b.gep(element, a, b.add(b.mul(number, PAIR), row * pitch))
            token = b.tensor_load(place, pair, None, "a")
            if missing:
                token = b.typeinfo(b.tovector(token, pair, "a"), tile(element, 1, PAIR), "a")
            repeated = b.broadcast(token, (self.columns.size, PAIR), (0, 1), tile(element, self.columns.size, PAIR))
            found.append(b.call_intrinsic("llvm.fma", [rhs.type], rhs.type, [rhs, repeated, total], "sums"))
        return found

    def _line(self, number: Value) -> Value:
        """A pair of rows of B."""
        b, element, line = self.b, self.accumulator, tile(self.accumulator, 1, self.lanes)
        if isinstance(number, ConstInt) and self.lines:
            return self.lines[number.value]
        assert self.panel is not None
        return b.tovector(b.tensor_load(b.gep(element, self.panel, b.mul(number, self.lanes)), line, None, "b"), line)

    def _folded(self, sums: list[Value]) -> Value:
        """Even and odd positions added up: rows of columns, flattened."""
        b, element, rows = self.b, self.accumulator, len(sums)
        filled = [*sums, *sums[-1:] * (rows % PAIR)]
        line = tile(element, 1, self.lanes)
        lines = b.concat(
            [b.typeinfo(s, line, "line") for s in filled], 0, tile(element, len(filled), self.lanes), "lines"
        )
        token = b.typeinfo(lines, tile(element, 1, len(filled) * self.lanes), "pairs")
        count = len(filled) * self.columns.size
        total = b.reduce("add", token, (1, PAIR), (1, PAIR), tile(element, 1, count))
        return b.shuffle(total, None, range(rows * self.columns.size)) if len(filled) > rows else total
