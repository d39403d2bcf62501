"""Columns reduced to a row.

A matrix that the caches hold: down a few registers of columns at a time. Of a larger one, a strip of columns at a time,
over blocks of whole rows:

    for strips of columns whose sums fill half of the L1 cache
      sums = rows 0 to 3 of the strip, added
      for blocks of 4 rows
        for tiles of the strip: sums = sums op tile         4 streams, each as long as the strip
      store sums

Memory is read in the order in which it lies, where walking down a few columns would touch another page for each row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.combine import Combine, Running
from tlx.lower.to_tiles.evaluate import Evaluator, Place, address_of, load_vector, store_vector
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.tile_shapes import Shape
from tlx.lower.to_tiles.view import View
from tlx.target import Target

_ROWS: Final = 4
_ACROSS: Final = 2  # registers


def is_large(evaluator: Evaluator, target: Target) -> bool:
    """Whether what is reduced is larger than the L2 cache, in enough rows to make blocks of."""
    value = evaluator.expression
    size = sum(leaf.view.rows * leaf.view.cols * bytes_of(leaf.element) for leaf in value.leaves())
    return size > target.caches.l2 and value.rows >= 2 * _ROWS


@dataclass(eq=False)
class Strips:
    """Emits the reduction.

    Attributes:
        b: Where.
        evaluator: What is reduced.
        combine: How.
        to, base: Where the result goes.
        lanes: Elements of a register.
        target: The machine.
    """

    b: TensorBuilder
    evaluator: Evaluator
    combine: Combine
    to: View
    base: Value
    lanes: int
    target: Target

    def emit(self) -> None:
        """Emit the loops over all strips."""
        b, width = self.b, self.lanes * _ACROSS
        cols = self.evaluator.expression.cols
        most = max(width, self.target.caches.l1 // 2 // bytes_of(self.combine.held) // width * width)
        scratch = Scratch()
        scratch.reserve(self.combine.held, min(most, -(-cols // width) * width))
        (sums,) = scratch.allocate(b)
        for strip in padded(cols, most, 1):
            with b.loop(0, strip.count, name="strip") as loop:
                self._strip(strip.size, strip.begin(b, loop.index), sums)
        scratch.release(b)

    def _strip(self, size: int, first: Value, sums: Value) -> None:
        rows = self.evaluator.expression.rows
        (head, *rest) = padded(rows, _ROWS, 1)
        self._block(size, first, sums, const_int(I64, 0), _ROWS, is_first=True)
        blocks = [Range(_ROWS, head.count - 1, _ROWS), *rest]
        for block in blocks:
            with self.b.loop(0, block.count, name="i") as i:
                row = block.begin(self.b, i.index)
                self._block(size, first, sums, row, block.size, is_first=False)
        view = self._sums(size)
        for columns in padded(size, self.lanes * _ACROSS, self.lanes):
            with self.b.loop(0, columns.count, name="c") as c:
                at = columns.begin(self.b, c.index)
                place = Place(1, columns.size, columns.padding, None, at)
                value = load_vector(self.b, view, address_of(self.b, view, sums, place), place)
                self._store(replace(place, column=self.b.add(first, at)), value)

    def _block(self, size: int, first: Value, sums: Value, row: Value, rows: int, *, is_first: bool) -> None:
        """Add some rows of a strip to its sums."""
        b, view = self.b, self._sums(size)
        for columns in padded(size, self.lanes * _ACROSS, self.lanes):
            with b.loop(0, columns.count, name="j") as j:
                at = columns.begin(b, j.index)
                place = Place(rows, columns.size, columns.padding, row, b.add(first, at))
                running = Running.along_rows(self.combine, place)
                tile = self.combine.widened(b, self.evaluator.result(place))
                (total,) = running.lines(b, running.first(b, tile))
                kept = Place(1, columns.size, columns.padding, None, at)
                address = address_of(b, view, sums, kept)
                if not is_first:
                    total = self.combine.apply(b, load_vector(b, view, address, kept), total)
                store_vector(b, view, address, kept, total)

    def _sums(self, size: int) -> View:
        return View(self.combine.held, 1, size, 0, 1)

    def _store(self, place: Place, value: Value) -> None:
        address = address_of(self.b, self.to, self.base, place)
        store_vector(self.b, self.to, address, place, self.combine.narrowed(self.b, value))


@dataclass(eq=False)
class ColumnsToRow:
    """Emits the reduction of a matrix that the caches hold: a few registers of columns at a time, down all rows.

    Attributes:
        b: Where.
        evaluator: What is reduced.
        combine: How.
        to, base: Where the result goes.
        shape: The tile.
    """

    b: TensorBuilder
    evaluator: Evaluator
    combine: Combine
    to: View
    base: Value
    shape: Shape

    def emit(self) -> None:
        """Emit the loops over columns, and over rows in them."""
        value, shape = self.evaluator.expression, self.shape
        for columns in padded(value.cols, shape.cols, shape.lanes):
            with self.b.loop(0, columns.count, name="j") as j:
                column = columns.begin(self.b, j.index)
                place = Place(1, columns.size, columns.padding, None, column)
                parts = padded(value.rows, shape.rows, 1)
                lines = [self._along_rows(rows, replace(place, rows=rows.size)) for rows in parts]
                result = self.combine.narrowed(self.b, self.combine.all_of(self.b, lines))
                store_vector(self.b, self.to, address_of(self.b, self.to, self.base, place), place, result)

    def _along_rows(self, rows: Range, place: Place) -> Value:
        """The row that rows of one tile height become."""
        b = self.b
        known = self.evaluator.compute(place, 0)
        running = Running.along_rows(self.combine, place)
        if rows.count == 1:
            place = replace(place, row=const_int(I64, rows.start))
            tile = self.combine.widened(b, self.evaluator.result(place, known))
            return running.lines(b, running.first(b, tile))[0]
        with b.loop(0, rows.count, carry=running.start(), name="i") as i:
            at = replace(place, row=rows.begin(self.b, i.index))
            value = self.combine.widened(b, self.evaluator.result(at, known))
            i.next(*running.add(b, i.carried, value))
        return running.lines(b, i.results)[0]
