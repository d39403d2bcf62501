"""Rows reduced to a column, a few at a time.

The code for a short row is no loop. Then some rows are worked on at a time, and what is left of them, a register each,
is folded together (`legalize/folds.py`): each step folds two of them, and all are stored at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import BFLOAT, FLOAT, I64, bits_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.combine import Combine, Running
from tlx.lower.to_tiles.evaluate import Evaluator, Place, address_of, store_vector
from tlx.lower.to_tiles.expression import Product
from tlx.lower.to_tiles.prefetch import Prefetch, prefetch
from tlx.lower.to_tiles.tile_shapes import Shape
from tlx.lower.to_tiles.tiles import column_tile, tile
from tlx.lower.to_tiles.view import View
from tlx.target import Target


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Tiles of one height: their rows, their columns, and what all of a width share."""

    rows: Range
    columns: list[Range]
    parts: list[Place]
    known: list[dict[int, Value]]


@dataclass(eq=False)
class RowsToColumn:
    """Emits the reduction.

    Attributes:
        b: Where.
        evaluator: What is reduced.
        combine: How.
        to, base: Where the results go.
        shape: The tile.
        target: The machine.
        products: Neighbours that an instruction adds up to an element of a tile; 0 where tiles are added as they are.
        excess: A register of what each row adds up to beside its result.
        prefetches: What is read soon.
        finish: What is made of some neighbouring results before they are stored.
    """

    b: TensorBuilder
    evaluator: Evaluator
    combine: Combine
    to: View
    base: Value
    shape: Shape
    target: Target
    products: int
    excess: Value | None = None
    prefetches: Sequence[Prefetch] = ()
    finish: Evaluator | None = None

    def emit(self) -> None:
        """All rows, a few at a time, folded together where their results are neighbours."""
        value, shape = self.evaluator.expression, self.shape
        together = _most_lines(shape.lanes, self.target) if self._are_neighbours() and value.rows > 1 else 1
        height, size = shape.rows, shape.rows
        if together > 1 and self._is_short():
            height, size = min(height, together), max(height, together)
        for group in padded(value.rows, size, 1):
            tiles = [self._tiles(rows) for rows in padded(group.size, height, 1)]
            with self.b.loop(0, group.count, name="i") as i:
                row = group.begin(self.b, i.index)
                lines = [line for tile in tiles for line in self._lines(tile, row)]
                if together == 1 or len(lines) == 1:
                    self._store_folded(lines, row)
                    continue
                for start in range(0, len(lines), together):
                    self._store_together(lines[start : start + together], self.b.add(row, start))

    def _are_neighbours(self) -> bool:
        """Whether results lie side by side, and what they are finished with."""
        others = self.finish.expression.leaves() if self.finish is not None else ()
        return self.to.row_stride == 1 and all(leaf.view.col_stride == 1 for leaf in others)

    def _is_short(self) -> bool:
        """Whether a row's code is no loop."""
        columns = padded(self.evaluator.expression.cols, self.shape.cols, self.shape.cols)
        return all(c.count == 1 for c in columns)

    def first_line(self) -> Value:
        """A register that adds up to what the first row does."""
        return self._lines_of_tile(self._tiles(Range(0, 1, 1)), None)[0]

    def _tiles(self, rows: Range) -> _Tiles:
        cols = self.shape.cols
        columns = padded(self.evaluator.expression.cols, cols, cols)
        parts = [Place(rows.size, c.size, c.padding) for c in columns]
        return _Tiles(rows, columns, parts, [self.evaluator.compute(part, 0) for part in parts])

    def _lines(self, tiles: _Tiles, first: Value) -> list[Value]:
        """The rows' lines."""
        return [
            line
            for i in range(tiles.rows.count)
            for line in self._lines_of_tile(tiles, self.b.add(first, tiles.rows.start + i * tiles.rows.size))
        ]

    def _lines_of_tile(self, tiles: _Tiles, row: Value | None) -> list[Value]:
        whole = tiles.parts[0]
        if self.products:
            whole = replace(whole, cols=whole.cols // self.products)
        running = Running.along_columns(self.combine, whole, self.shape.lanes)
        state: list[Value] = []
        for columns, part, shared in zip(tiles.columns, tiles.parts, tiles.known, strict=True):
            place = replace(part, row=row)
            known = self.evaluator.compute(place, 1, shared)
            if columns.count == len(tiles.parts) == 1 and not self.products:
                return running.only(self.b, self._tile(replace(place, column=const_int(I64, columns.start)), known))
            state = self._along_columns(running, columns, place, known, state)
        lines = running.lines(self.b, state)
        return lines if self.excess is None else [self.b.binary("sub", line, self.excess) for line in lines]

    def _along_columns(
        self, running: Running, columns: Range, place: Place, known: dict[int, Value], state: list[Value]
    ) -> list[Value]:
        b = self.b
        if columns.count == 1:
            tile = self._tile(replace(place, column=const_int(I64, columns.start)), known)
            state = state or (running.start() if self.products else [])
            return running.add(b, state, tile) if state else running.first(b, tile)
        with b.loop(0, columns.count, carry=state or running.start(), name="j") as j:
            at = replace(place, column=columns.begin(self.b, j.index))
            prefetch(b, self.prefetches, at)
            j.next(*running.add(b, j.carried, self._tile(at, known)))
        return j.results

    def _tile(self, place: Place, known: dict[int, Value]) -> Value:
        value = self.evaluator.result(place, known)
        if self.products:
            return self._neighbours(value, place)
        if self._are_pairs(place):
            return self.combine.widened_pairs(self.b, value, place.rows, self.shape.lanes)
        return self.combine.masked(self.b, self.combine.widened(self.b, value), place)

    def _neighbours(self, value: Value, place: Place) -> Value:
        """Sums of neighbours, where an instruction has them; what holds no data has been multiplied as zero."""
        token = self.b.typeinfo(value, tile(self.combine.held, place.rows, place.cols), "products")
        return self.b.reduce("add", token, (1, self.products), (1, self.products))

    def _are_pairs(self, place: Place) -> bool:
        """Whether a row's elements, in whole registers of bfloat, may be added in any order."""
        if (
            self.combine.element != BFLOAT
            or self.combine.held != FLOAT
            or self.evaluator.expression.bits > bits_of(BFLOAT)
        ):
            return False
        return not place.padding and place.cols % (2 * self.shape.lanes) == 0

    def _store_folded(self, lines: list[Value], row: Value) -> None:
        b = self.b
        for number, line in enumerate(lines):
            at = Place(1, 1, 0, b.add(row, number))
            one = self._finished(self.combine.folded(b, line, self.shape.lanes), 1, b.add(row, number))
            store_vector(b, self.to, address_of(b, self.to, self.base, at), at, one)

    def _store_together(self, lines: list[Value], row: Value) -> None:
        b, held, lanes = self.b, self.combine.held, self.shape.lanes
        lines = [self.combine.in_signed_order(b, line) for line in lines]
        tokens = [b.typeinfo(line, tile(held, 1, lanes), "line") for line in lines]
        joined = b.concat(tokens, 0, tile(held, len(lines), lanes), "lines") if len(lines) > 1 else lines[0]
        token = b.typeinfo(joined, column_tile(held, lanes, len(lines)), "columns")
        folded = b.reduce(self.combine.in_order, token, (lanes, 1), None, tile(held, 1, len(lines)))
        results = self._finished(self.combine.in_signed_order(b, folded), len(lines), row)
        start = address_of(b, self.to, self.base, Place(1, 1, 0, row))
        store_vector(b, self.to.as_row(), start, Place(1, len(lines), 0), results)

    def _finished(self, results: Value, count: int, first: Value) -> Value:
        """What is stored of some neighbouring results."""
        results = self.combine.narrowed(self.b, results)
        if self.finish is None:
            return results
        known = {n: results for n, node in enumerate(self.finish.expression.nodes) if isinstance(node, Product)}
        return self.finish.result(Place(1, count, 0, None, first), known)


def _most_lines(lanes: int, target: Target) -> int:
    """Lines of so many lanes that are folded together: they are in a quarter of the registers, and become one."""
    return max(1, min(lanes, target.registers // 4))
