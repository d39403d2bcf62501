"""What a product's kernel does with a register tile once its sums are complete: compute the rest of the tree, store.

A short expression is computed row by row on the sums as they are in registers. A long one, and what a matrix unit
leaves, goes through a small tile in memory, so that its code is there once and leaves the registers to it:

    %row = shufflevector %sums, <r*cols ... >           store %sums, %tile
    %y = ... %row, load x[r] ...                  or    for r, for c: %y = ... load %tile[r][c], load x[r][c] ...
    store %y, c[r]                                                    store %y, c[r][c]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.metadata import FLUSHED
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import FloatType, Type, bits_of
from tlx.ir.values import Value
from tlx.lower.to_tiles.blocks import Range, padded
from tlx.lower.to_tiles.evaluate import Evaluator, Place, load_vector, store_vector
from tlx.lower.to_tiles.expression import Expression
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.tiles import convert
from tlx.lower.to_tiles.tiles import tile as tile_type
from tlx.lower.to_tiles.view import View
from tlx.target import Sign, Target

_MOST_IN_REGISTERS: Final = 8


@dataclass(eq=False)
class Epilogue:
    """Finishes register tiles of one kernel.

    Attributes:
        b: Where to emit.
        expression: What to compute of the product.
        pointers, scalars: Its leaves and scalars.
        recipe, target: How the product is computed.
        element: Element type of the product.
        sign: How its integers are widened to that.
        consume: Called with each place and its result: stores it, or adds it to a reduction.
        tile: A tile in memory, where `needs_scratch`.
    """

    b: TensorBuilder
    expression: Expression
    pointers: Sequence[Value]
    scalars: Sequence[Value]
    recipe: Recipe
    target: Target
    element: Type
    sign: Sign
    consume: Callable[[Place, Value], None]
    tile: Value | None = None

    def finish(self, sums: Value, rows: Range, columns: Range, place: tuple[Value, Value]) -> None:
        """Emit the rest for the register tile of `sums` at a row and a column."""
        if self.tile is None:
            self._in_registers(sums, rows, columns, place)
        else:
            self._through_scratch(sums, rows, columns, place, lambda at, _here, value: self.consume(at, value))

    def whole(self, sums: Value, rows: Range, columns: Range, place: tuple[Value, Value]) -> Value:
        """The results of a register tile, row by row, for who stores them otherwise."""
        if self.tile is None:
            return self._result(Place(rows.size, columns.size, columns.padding, *place), sums)
        b, element = self.b, self.expression.element
        pitch = columns.size * bits_of(self.recipe.accumulator) // bits_of(element)
        tile = b.retype(self.tile, element)

        def keep(at: Place, here: tuple[Value, Value], value: Value) -> None:
            """Write results, which are no wider, where their sums were."""
            address = b.gep(element, tile, b.add(b.mul(here[0], pitch), here[1]))
            store_vector(b, View(element, 1, at.cols - at.padding, 0, 1), address, at, value)

        self._through_scratch(sums, rows, columns, place, keep)
        there = tile_type(element, rows.size, columns.size)
        return b.tovector(b.tensor_load(tile, there, (0, pitch), "results"), there, "results")

    def _in_registers(self, sums: Value, rows: Range, columns: Range, place: tuple[Value, Value]) -> None:
        b = self.b
        lanes = min(self.recipe.lanes, columns.size)
        registers = columns.size // lanes
        live = (rows.size + self.expression.live - 1) * registers
        width = columns.size if live <= self.target.registers else lanes
        for row in range(rows.data):
            for piece in padded(columns.data, width, lanes):
                for start in range(piece.start, piece.start + piece.count * piece.size, piece.size):
                    first = row * columns.size + start
                    part = b.shuffle(sums, None, range(first, first + piece.size), "sums")
                    at = Place(1, piece.size, piece.padding, b.add(place[0], row), b.add(place[1], start))
                    self._consume(at, part)

    def keep(self, sums: Value, rows: Range, columns: Range) -> None:
        """Store sums to the tile in memory."""
        assert self.tile is not None
        type_ = tile_type(self.recipe.accumulator, rows.size, columns.size)
        self.b.tensor_store(self.tile, self.b.typeinfo(sums, type_, "sums"))

    def row(self, row: Value, columns: Range, place: tuple[Value, Value]) -> None:
        """Emit the rest for one row, without padding, of the tile in memory, without a loop."""
        b, held = self.b, self.recipe.accumulator
        assert self.tile is not None
        width = self._width(columns)
        for start in range(0, columns.size, width):
            size = min(width, columns.size - start)
            at = Place(1, size, 0, b.add(place[0], row), b.add(place[1], start))
            address = b.gep(held, self.tile, b.add(b.mul(row, columns.size), start))
            self._consume(at, load_vector(b, View(held, 1, size, 0, 1), address, at, self._kind_of_sums))

    def _through_scratch(
        self,
        sums: Value,
        rows: Range,
        columns: Range,
        place: tuple[Value, Value],
        consume: Callable[[Place, tuple[Value, Value], Value], None],
    ) -> None:
        """Keep sums in memory, and compute some columns of a row at a time; `consume` gets their place in the tile."""
        b = self.b
        self.keep(sums, rows, columns)
        assert self.tile is not None
        held = self.recipe.accumulator
        with b.loop(0, rows.data, name="er") as row:
            for piece in padded(columns.data, self._width(columns), min(self._lanes, columns.size)):
                with b.loop(0, piece.count, name="ec") as loop:
                    start = piece.begin(b, loop.index)
                    at = Place(1, piece.size, piece.padding, b.add(place[0], row.index), b.add(place[1], start))
                    address = b.gep(held, self.tile, b.add(b.mul(row.index, columns.size), start))
                    view = View(held, 1, piece.size - piece.padding, 0, 1)
                    part = load_vector(b, view, address, at, self._kind_of_sums)
                    consume(at, (row.index, start), self._result(at, part))

    @property
    def _lanes(self) -> int:
        """Columns of a register."""
        return max(1, self.target.vector_bytes * 8 // self.expression.bits)

    def _width(self, columns: Range) -> int:
        """Columns that are computed together: two registers, which narrower results may share, where there is room."""
        registers = 2 if 2 * self.expression.live <= self.target.registers else 1
        return min(columns.size, registers * self._lanes)

    @property
    def _kind_of_sums(self) -> str:
        """What marks loads of sums: a matrix unit's are not subnormal."""
        return FLUSHED if self.recipe.unit == "matrix" and isinstance(self.recipe.accumulator, FloatType) else ""

    def _consume(self, place: Place, sums: Value) -> None:
        self.consume(place, self._result(place, sums))

    def _result(self, place: Place, sums: Value) -> Value:
        product = convert(self.b, sums, self.element, self.sign)
        return Evaluator(self.b, self.expression, self.pointers, self.scalars, lambda _place: product).result(place)


def needs_scratch(expression: Expression, recipe: Recipe) -> bool:
    """Whether tiles go through memory."""
    return recipe.unit == "matrix" or expression.cost > _MOST_IN_REGISTERS
