"""Reducing what a product's kernel computes, tile by tile, without the product ever lying in memory.

rows to a column: a register's worth of partial results for each row, folded at the end
columns to a row: one partial result for each column
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import VectorType
from tlx.ir.values import Value
from tlx.lower.to_tiles.blocks import padded
from tlx.lower.to_tiles.combine import Combine, slices
from tlx.lower.to_tiles.evaluate import Place, address_of, load_vector, store_vector
from tlx.lower.to_tiles.scratch import Scratch
from tlx.lower.to_tiles.view import View

_LONGEST_PIECE = 64


@dataclass(eq=False)
class Partial:
    """The partial results of one kernel.

    Attributes:
        b: Where to emit.
        combine: The reduction's operation.
        axis: 0: columns are reduced to a row; 1: rows to a column.
        extents: Rows and columns of what is reduced.
        lanes: Elements that are worked on at a time; tiles are multiples of it.
        to, base: Where the result goes.
        memory: Where the partial results are.
    """

    b: TensorBuilder
    combine: Combine
    axis: int
    extents: tuple[int, int]
    lanes: int
    to: View
    base: Value
    memory: Value | None = None

    @property
    def count(self) -> int:
        """Partial results: a multiple of `lanes`; tiles may reach beyond the last column."""
        if self.axis == 1:
            return self.extents[0] * self.lanes
        return -(-(self.extents[1] + _LONGEST_PIECE) // self.lanes) * self.lanes

    def reserve(self, scratch: Scratch) -> None:
        """Ask for the memory."""
        scratch.reserve(self.combine.held, self.count)

    def start(self) -> None:
        """Nothing is combined yet."""
        b = self.b
        with b.loop(0, self.count // self.lanes, name="p") as loop:
            place = Place(1, self.lanes, 0, None, b.mul(loop.index, self.lanes))
            self._write(place, self.combine.identity(self.lanes))

    def add(self, place: Place, value: Value) -> None:
        """Combine a tile of one row with what is there."""
        b = self.b
        value = self.combine.widened(b, value)
        if self.axis == 1:
            assert place.row is not None
            value = self.combine.all_of(b, slices(b, self.combine.masked(b, value, place), self.lanes))
            place = Place(1, self.lanes, 0, None, b.mul(place.row, self.lanes))
        else:
            place = Place(1, place.cols, 0, None, place.column)
        self._write(place, self.combine.apply(b, self._read(place), value))

    def finish(self) -> None:
        """Write the result."""
        b = self.b
        if self.axis == 1:
            with b.loop(0, self.extents[0], name="r") as loop:
                row = self._read(Place(1, self.lanes, 0, None, b.mul(loop.index, self.lanes)))
                self._store(Place(1, 1, 0, loop.index), self.combine.folded(b, row, self.lanes))
            return
        for columns in padded(self.extents[1], self.lanes, self.lanes):
            with b.loop(0, columns.count, name="c") as loop:
                column = columns.begin(b, loop.index)
                place = Place(1, columns.size, columns.padding, None, column)
                self._store(place, self._read(place))

    @property
    def _view(self) -> View:
        return View(self.combine.held, 1, self.count, 0, 1)

    def _read(self, place: Place) -> Value:
        assert self.memory is not None
        return load_vector(self.b, self._view, address_of(self.b, self._view, self.memory, place), place)

    def _write(self, place: Place, value: Value) -> None:
        assert self.memory is not None
        assert isinstance(value.type, VectorType)
        store_vector(self.b, self._view, address_of(self.b, self._view, self.memory, place), place, value)

    def _store(self, place: Place, value: Value) -> None:
        address = address_of(self.b, self.to, self.base, place)
        store_vector(self.b, self.to, address, place, self.combine.narrowed(self.b, value))
