"""The N tail of a product: its last columns, as dot products along K or by pairs of positions of K.

A few columns, far fewer than a register's lanes, are dot products along K:

    N = 49, 16 lanes       C[:, 0:48] in register tiles, three registers a row
                           C[:, 48]   += A[i, k:k+16] * b[k:k+16], reduced at the end

In a register tile, one column would cost as much as 16. The columns of B are copied to rows first. The rows of A of a
cache block are read a second time while they are cached. C holds the sums until they are complete, also those that an
epilogue follows: it is computed a row at a time.

Up to half a register of columns share their registers with the next position of K:

    16 lanes, 8 columns    sums of a row   c0 c0' c1 c1' ... c7 c7'     of even and of odd positions of K
    B, pairs of its rows   b00 b10 b01 b11 ... b07 b17
    A, a pair              a0 a1 a0 a1 ... a0 a1                        a broadcast load, off the multipliers' ports

    C[i, n:] = c0 + c0', c1 + c1', ...                                  added at the end, two rows at a time

In register tiles, these columns would take as many multiply-adds as a full register of columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import I64, VectorType
from tlx.ir.values import ConstInt, Value, const_int, zero
from tlx.lower.to_tiles.emit.copy import TileCopy, blocked_loop
from tlx.lower.to_tiles.emit.gemm.epilogue import TileEpilogue
from tlx.lower.to_tiles.emit.gemm.function import GemmFunction, KPass
from tlx.lower.to_tiles.emit.kernel import Scratch, ScratchBuffer
from tlx.lower.to_tiles.emit.tiles import SWAPPED_AXES, column_tile, convert_tile, tile
from tlx.lower.to_tiles.select.recipe import PAIR, EqualTiles
from tlx.lower.to_tiles.select.recipe_cost import dot_product_rows, pairs_stay_in_registers


@dataclass(eq=False)
class DotProductColumns:
    """Emits an N tail of dot products along K.

    Attributes:
        function: The kernel's function.
        pitch: Row stride of A, packed or not.
        epilogue: The product's epilogue, if it has one.
        count: Columns of the tail.
        lanes: Elements of a register.
        rows_of_b: The columns of B as rows, zero-padded to whole registers.
    """

    function: GemmFunction
    pitch: int
    epilogue: TileEpilogue | None = None
    rows_of_b: ScratchBuffer = field(default_factory=ScratchBuffer)

    def __post_init__(self) -> None:
        self.b, self.gemm, self.target = self.function.b, self.function.gemm, self.function.target
        self.count, self.lanes = self.function.recipe.tile.dot_columns, self.function.recipe.tile.lanes

    @property
    def depth(self) -> int:
        """Elements of a copied column, padding included."""
        return -(-self.gemm.k // self.lanes) * self.lanes

    def reserve(self, scratch: Scratch) -> None:
        """Reserve memory for the copied columns."""
        self.rows_of_b = scratch.reserve(self.function.recipe.mma.accumulator, self.depth * self.count)

    def copy(self, rhs: Value) -> None:
        """Copy the columns of B to rows."""
        b, view, lanes, element = self.b, self.gemm.b, self.lanes, self.gemm.c.element
        rows, start = self.rows_of_b.pointer, b.gep(view.element, rhs, (self.gemm.n - self.count) * view.col_stride)
        copy = TileCopy(
            b, view.element, view.row_stride, False, element, lambda v: convert_tile(b, v, element, "f"), "b"
        )
        for column in range(self.count):

            def part(number: Value, size: int, column: int = column) -> None:
                k = b.mul(number, lanes)
                at = b.gep(view.element, start, b.add(b.mul(k, view.row_stride), column * view.col_stride))
                token = copy.load(at, (1, lanes), (0, lanes - size))
                b.tensor_store(b.gep(element, rows, b.add(k, column * self.depth)), token)

            blocked_loop(b, self.gemm.k, lanes, "k", part)

    def tiles(self, a: Value, row: Value, rows: int, k_pass: KPass) -> None:
        """Compute the tail of `rows` rows for one pass over K.

        Args:
            a: Address of the pass's first element in the first row of A.
            row: The first row.
            rows: Number of rows.
            k_pass: The pass.
        """
        pointers = self.function.at(self.gemm.c, self.function.c, row, const_int(I64, 0)), a
        groups = -(-rows // dot_product_rows(self.target.registers, self.count))
        done = 0
        for group in range(groups):
            height = (rows + group) // groups
            self._group(pointers, done, height, k_pass)
            done += height
        if self.epilogue is not None and k_pass.is_last:
            columns = EqualTiles(self.gemm.n - self.count, 1, self.lanes, self.lanes - self.count)
            self.epilogue.finish_in_c(rows, columns, row)

    def _group(self, pointers: tuple[Value, Value], row: int, rows: int, k_pass: KPass) -> None:
        b, gemm, lanes = self.b, self.gemm, self.lanes
        element, start = gemm.c.element, k_pass.start
        full, rest = divmod(k_pass.size, lanes)
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
                offset = top * gemm.c.row_stride + (gemm.n - self.count + column) * gemm.c.col_stride
                self._store(b.gep(element, c, offset), lines[top : top + lanes], first=k_pass.is_first)

    def _step(self, a: Value, rows: int, at: tuple[Value, Value], padding: int, sums: list[Value]) -> list[Value]:
        """The sums, row by row, after one register along K, at an offset from the pass's start.

        The last `padding` positions are beyond the pass. The copied columns of B end in zeros, but in any pass except
        the last, elements of the next pass follow, which may be infinite.
        """
        b, gemm, lanes = self.b, self.gemm, self.lanes
        element, (start, offset) = gemm.c.element, at
        k = b.add(start, offset)
        present = tile(element, 1, lanes, (0, padding))
        ends_in_zeros = isinstance(k, ConstInt) and k.value + lanes == self.depth == gemm.k + padding
        copied = tile(element, 1, lanes) if ends_in_zeros else present
        columns: list[Value] = []
        for column in range(self.count):
            address = b.gep(element, self.rows_of_b.pointer, b.add(k, column * self.depth))
            columns.append(b.tovector(b.tensor_load(address, copied, None, "b"), copied))
        results: list[Value] = []
        for row in range(rows):
            address = b.gep(element, a, b.add(offset, row * self.pitch))
            part = b.tovector(b.tensor_load(address, present, None, "a"), present)
            before = sums[row * self.count : (row + 1) * self.count]
            results += [self._multiply_add(part, column, total) for column, total in zip(columns, before, strict=True)]
        return results

    def _multiply_add(self, part: Value, column: Value, total: Value) -> Value:
        """`total + part * column`, fused if the target can; otherwise `llvm.fma` is a library call."""
        name = "llvm.fma" if self.target.instructions.has_fma else "llvm.fmuladd"
        return self.b.call_intrinsic(name, [total.type], total.type, [part, column, total], "dot")

    def _store(self, place: Value, lines: list[Value], *, first: bool) -> None:
        """Reduce the sums of at most as many rows as a register has lanes, and store them to a column."""
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


_ROWS_AT_ONCE: Final = 8
"""Rows of B that are interleaved at a time."""


_ROWS_REDUCED_AT_ONCE: Final = 2
"""Rows whose sums of even and of odd positions are added by the same instructions."""
_MAX_UNROLLED_PRODUCTS: Final = 256
"""Multiply-adds up to which sums are unrolled."""


@dataclass(eq=False)
class PairedColumns:
    """Emits an N tail with pairs of positions of K in a register.

    Attributes:
        function: The kernel's function.
        view: The view of B.
        accumulator: Type of the sums.
        columns: The columns of the tail.
        packs_a: Whether A is packed, with its rows zero-padded.
        is_once: Whether there is a single row tile, of an even number of rows.
        panel: Interleaved pairs of rows of B, if they are many.
        lines: The pairs in registers, if they are few.
        b_start: Address of B's columns, if pairs are interleaved as they are multiplied.
    """

    function: GemmFunction
    panel: ScratchBuffer = field(default_factory=ScratchBuffer)
    lines: list[Value] = field(default_factory=list[Value])
    b_start: Value | None = None

    def __post_init__(self) -> None:
        function, gemm, recipe = self.function, self.function.gemm, self.function.recipe
        self.b, self.view, self.accumulator = function.b, gemm.b, recipe.mma.accumulator
        self.columns = function.columns[-1]
        self.packs_a = recipe.packing.a
        self.is_once = recipe.packing.a and gemm.m <= recipe.tile.mr and gemm.m % PAIR == 0

    def reserve(self, scratch: Scratch) -> None:
        """Reserve memory for the pairs, unless they stay in registers."""
        if not self.stays_in_registers:
            self.panel = scratch.reserve(self.accumulator, self.steps * self.lanes)

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
        """Steps with both positions: nothing beyond the last row of A may be read."""
        return self.steps - (self.view.rows % PAIR and not self.packs_a)

    @property
    def stays_in_registers(self) -> bool:
        """Whether all pairs of rows stay in registers."""
        return pairs_stay_in_registers(self.steps, self.function.target.registers)

    def pack(self, rhs: Value) -> None:
        """Interleave pairs of rows of B, from its address; a missing row is zero."""
        b, view = self.b, self.view
        start = b.gep(view.element, rhs, self.columns.start * view.col_stride)
        if self.stays_in_registers and self.is_once:
            self.b_start = start
            return
        if self.stays_in_registers:
            pairs = self._pairs(start, const_int(I64, 0), view.rows)
            spans = [range(n * self.lanes, (n + 1) * self.lanes) for n in range(self.steps)]
            self.lines = [b.shuffle(pairs, None, span, "b.pair") for span in spans]
            return
        panel, element = self.panel.pointer, self.accumulator

        def part(number: Value, count: int) -> None:
            row = b.mul(number, _ROWS_AT_ONCE)
            there = b.gep(element, panel, b.mul(row, self.columns.size))
            type_ = tile(element, -(-count // PAIR), self.lanes)
            b.tensor_store(there, b.typeinfo(self._pairs(start, row, count), type_, "b.pairs"))

        blocked_loop(b, view.rows, _ROWS_AT_ONCE, "k", part)
        b.keep_in_memory(panel)

    def _pairs(self, start: Value, row: Value, count: int) -> Value:
        """`count` rows of B from one on, interleaved in pairs; a missing row is zero."""
        b, view, element, columns = self.b, self.view, self.accumulator, self.columns
        steps = -(-count // PAIR)
        type_ = tile(view.element, steps * PAIR, columns.size, (steps * PAIR - count, columns.padding))
        is_run = view.row_stride == columns.size and not type_.is_padded
        if is_run:
            type_ = tile(view.element, steps, self.lanes)
        address = b.gep(view.element, start, b.mul(row, view.row_stride))
        token = b.tensor_load(address, type_, (0, 0 if is_run else view.row_stride), "b")
        wide = convert_tile(b, b.tovector(token, type_, "b.rows"), element, "f")
        result = tile(element, steps, self.lanes)
        if is_run:  # a register holds a pair
            seen = TensorType.dense(element, (steps, 1, PAIR, columns.size, 1))
            return b.reshape_permute(
                b.typeinfo(wide, seen, "b.rows"), SWAPPED_AXES, result.shape, result.vector, "b.pairs"
            )
        token = b.typeinfo(wide, tile(element, steps * PAIR, columns.size), "b.rows")
        return b.reshape_block(token, (0,), (PAIR,), result.vector, "b.pairs")

    def total(self, a: Value, pitch: int, rows: int) -> Value:
        """The flattened tile of sums of `rows` rows of A, from the address of the first one."""
        if self.b_start is not None:
            return self._by_rows(self.b_start, a, pitch, rows)
        b, steps = self.b, self.steps
        sums: list[Value] = [zero(VectorType(self.lanes, self.accumulator))] * rows
        looped = 0 if self.stays_in_registers or steps * rows <= _MAX_UNROLLED_PRODUCTS else self._full
        if looped:
            with b.loop(0, looped, carry=sums, name="kk") as loop:
                loop.next(*self._step(a, pitch, loop.index, loop.carried))
            sums = list(loop.results)
        for number in range(looped, steps):
            sums = self._step(a, pitch, const_int(I64, number), sums, missing=int(number >= self._full))
        return self._add_pairs(sums)

    def _by_rows(self, first: Value, a: Value, pitch: int, rows: int) -> Value:
        """The same, two rows at a time over all of K; the first two interleave the pairs of B.

        The even and odd sums of two rows are added while the next rows are multiplied: 8x8x8 half takes 38.2 cycles,
        and 39.1 if those of all rows are added at the end (Emerald Rapids).
        """
        b, columns = self.b, self.columns.size
        starts = range(0, self.view.rows, PAIR)
        parts: list[Value] = []
        for row in range(0, rows, _ROWS_REDUCED_AT_ONCE):
            address = b.gep(self.accumulator, a, row * pitch)
            sums: list[Value] = [zero(VectorType(self.lanes, self.accumulator))] * _ROWS_REDUCED_AT_ONCE
            for number, start in enumerate(starts):
                if not row:
                    self.lines.append(self._pairs(first, const_int(I64, start), min(PAIR, self.view.rows - start)))
                sums = self._step(address, pitch, const_int(I64, number), sums, missing=int(number >= self._full))
            parts.append(self._add_pairs(sums))
        if len(parts) == 1:
            return parts[0]
        two = tile(self.accumulator, _ROWS_REDUCED_AT_ONCE, columns)
        return b.concat([b.typeinfo(p, two, "rows") for p in parts], 0, tile(self.accumulator, rows, columns), "rows")

    def _step(self, a: Value, pitch: int, number: Value, sums: list[Value], *, missing: int = 0) -> list[Value]:
        """The sums after a pair of positions, of which the second may be missing."""
        b, element = self.b, self.accumulator
        pair = tile(element, 1, PAIR, (0, missing))
        rhs = self._line(number)
        results: list[Value] = []
        for row, total in enumerate(sums):
            address = b.gep(element, a, b.add(b.mul(number, PAIR), row * pitch))
            token = b.tensor_load(address, pair, None, "a")
            if missing:
                token = b.typeinfo(b.tovector(token, pair, "a"), tile(element, 1, PAIR), "a")
            repeated = b.broadcast(token, (self.columns.size, PAIR), (0, 1), tile(element, self.columns.size, PAIR))
            results.append(b.fma(rhs, repeated, total, "sums"))
        return results

    def _line(self, number: Value) -> Value:
        """A pair of rows of B."""
        b, element, line = self.b, self.accumulator, tile(self.accumulator, 1, self.lanes)
        if isinstance(number, ConstInt) and self.lines:
            return self.lines[number.value]
        address = b.gep(element, self.panel.pointer, b.mul(number, self.lanes))
        return b.tovector(b.tensor_load(address, line, None, "b"), line)

    def _add_pairs(self, sums: list[Value]) -> Value:
        """The sums of even and odd positions added: the flattened tile."""
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
