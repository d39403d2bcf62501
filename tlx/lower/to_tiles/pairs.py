"""The last columns of a product, at most half a register of them: two positions of K fill the other half.

    16 lanes, 8 columns    sums of a row   c0 c0' c1 c1' ... c7 c7'     of even and of odd positions of K
    B, pairs of its rows   b00 b10 b01 b11 ... b07 b17
    A, a pair              a0 a1 a0 a1 ... a0 a1                        loaded so, by no port that multiplies

    C[i, n:] = c0 + c0', c1 + c1', ...                                  added up in the end, two rows at a time

In register tiles these columns take as many multiply-adds as a whole register.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, Type, VectorType, bytes_of
from tlx.ir.values import ConstInt, Value, const_int, zero
from tlx.lower.to_tiles.batch import leaves_caches
from tlx.lower.to_tiles.blocks import Range
from tlx.lower.to_tiles.cost import Shape, register_tile
from tlx.lower.to_tiles.last_columns import dot_cycles
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.tiles import convert, tile
from tlx.lower.to_tiles.view import View
from tlx.target import Target
from tlx.types import TensorType

PAIR: Final = 2
_DEALING: Final = (0, 1, 3, 2, 4)
_ROWS_AT_ONCE: Final = 8
"""Rows of B that are interleaved together."""
_INTERLEAVED: Final = (1.0, 2.5)
"""Cycles to interleave two rows of B in registers, and to store them."""
_FOLDED: Final = 0.75
"""Cycles to add up the sums of a row."""
_FOLDED_AT_ONCE: Final = 2
"""Rows whose sums of even and of odd positions are added up by the same instructions."""
_SHORT: Final = 256
"""Multiply-adds up to which sums are written out."""


def last_pairs(gemm: Gemm, target: Target, accumulator: Type, shape: Shape, *, packs_a: bool, dots: int) -> int:
    """How many columns are summed up as pairs, where that takes fewer cycles than a register for them; else none.

    Args:
        gemm: The product, whose B is read as it lies.
        target: The machine.
        accumulator: Type of the sums.
        shape: All of C, in whole registers.
        packs_a: Whether A is packed, and its rows filled up with zeros.
        dots: Columns that are summed along K otherwise.
    """
    count, lanes = gemm.n % shape.lanes, shape.lanes
    if not 0 < count <= lanes // PAIR or not _can_pair(gemm, target, accumulator, packs_a=packs_a):
        return 0
    if gemm.k * lanes // PAIR * bytes_of(accumulator) > target.caches.l1 // 4:
        return 0  # pairs of B's rows would not stay near
    if gemm.n > count and gemm.a.moves > target.caches.l2 // 2:
        return 0  # A is read once more
    rest = gemm.n - count
    main = _cycles(gemm, target, rest, lanes) if rest else 0
    mr, _ = register_tile(Shape(gemm.m, rest or count, lanes, shape.resident), target.registers, target.core)
    other = main + dot_cycles(gemm, target, dots, lanes) if dots else _cycles(gemm, target, gemm.n, lanes)
    return count if main + pair_cycles(gemm, target, mr) < other else 0


def _can_pair(gemm: Gemm, target: Target, accumulator: Type, *, packs_a: bool) -> bool:
    """Whether sums by pairs are the same product."""
    reads = gemm.a.is_row_major and gemm.b.is_row_major and gemm.c.is_row_major and len(gemm.sums) == 1
    known = gemm.a.element == accumulator or packs_a
    stores = gemm.reduction is None and not leaves_caches(gemm.batch, target)
    return gemm.is_float and target.fused and gemm.k >= PAIR and reads and known and stores


def _cycles(gemm: Gemm, target: Target, columns: int, lanes: int) -> float:
    """About how many cycles register tiles of so many columns take."""
    mr, nv = register_tile(Shape(gemm.m, columns, lanes), target.registers, target.core)
    vectors = -(-columns // lanes)
    panels = -(-vectors // nv)
    return gemm.k * panels * _step(gemm, target, mr, vectors / panels)


def _step(gemm: Gemm, target: Target, mr: int, vectors: float) -> float:
    """Cycles of a step along K for all rows, in tiles of up to `mr`: what the ports allow.

    The model of `cost` has a tile of one register a row wait for loads: 12x16 would take 7.9 cycles. It takes 6.5.
    """
    core, tiles = target.core, -(-gemm.m // mr)
    rows = gemm.m / tiles
    return tiles * max(rows * vectors / core.products, (rows + vectors) / core.loads, core.latency)


def pair_cycles(gemm: Gemm, target: Target, mr: int) -> float:
    """About how many cycles the columns take that are summed by pairs, in tiles of up to `mr` rows."""
    steps = -(-gemm.k // PAIR)
    stored = not _stay(steps, target)
    return steps * (_step(gemm, target, mr, 1) + _INTERLEAVED[stored]) + gemm.m * _FOLDED


def _stay(steps: int, target: Target) -> bool:
    """Whether so many pairs of B's rows stay in a quarter of the registers."""
    return steps <= target.registers // 4


@dataclass(eq=False)
class Pairs:
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
    view: View
    accumulator: Type
    columns: Range
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
        return _stay(self.steps, self.target)

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
        full, rest = divmod(view.rows, _ROWS_AT_ONCE)
        with b.loop(0, full, name="k") as loop:
            self._pack_rows(start, b.mul(loop.index, _ROWS_AT_ONCE), _ROWS_AT_ONCE)
        if rest:
            self._pack_rows(start, const_int(I64, full * _ROWS_AT_ONCE), rest)
        assert self.panel is not None
        b.keep(self.panel)

    def _pack_rows(self, start: Value, row: Value, count: int) -> None:
        b, element = self.b, self.accumulator
        assert self.panel is not None
        there = b.gep(element, self.panel, b.mul(row, self.columns.size))
        type_ = tile(element, -(-count // PAIR), self.lanes)
        b.tensor_store(there, b.typeinfo(self._pairs(start, row, count), type_, "b.pairs"))

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
        wide = convert(b, b.tovector(token, type_, "b.rows"), element, "f")
        result = tile(element, steps, self.lanes)
        if is_run:  # a register holds a pair
            seen = TensorType.dense(element, (steps, 1, PAIR, columns.size, 1))
            return b.reshape_permute(b.typeinfo(wide, seen, "b.rows"), _DEALING, result.shape, result.vector, "b.pairs")
        token = b.typeinfo(wide, tile(element, steps * PAIR, columns.size), "b.rows")
        return b.reshape_block(token, (0,), (PAIR,), result.vector, "b.pairs")

    def total(self, a: Value, pitch: int, rows: int) -> Value:
        """The flattened tile of sums of so many rows of A, given where the first one begins."""
        if self.first is not None:
            return self._by_rows(self.first, a, pitch, rows)
        b, steps = self.b, self.steps
        sums: list[Value] = [zero(VectorType(self.lanes, self.accumulator))] * rows
        looped = 0 if self.are_few or steps * rows <= _SHORT else self._full
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
