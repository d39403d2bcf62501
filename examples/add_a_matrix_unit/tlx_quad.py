"""`quad`: a machine with an imaginary matrix unit, whose instructions are played by plain LLVM vectors.

The unit has eight accumulators of 4x4 floats. Its one product adds the outer product of two registers of four floats:

    acc[i][j] += a[i] * b[j]

A tile of A is read as it lies in memory, four rows of four floats, and turned: a register for each position of K.
"""

# ruff: noqa: ARG002 (all units take the same arguments)

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tlx.ir.types import FLOAT, I8, VectorType
from tlx.ir.values import Keyword
from tlx.target.instructions.dots import Dot
from tlx.target.matrix_unit import MatrixUnit, TileKind
from tlx.target.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlx.ir.builder import Builder
    from tlx.ir.instructions import Instruction
    from tlx.ir.values import Value
    from tlx.target.matrix_unit import TileAddress, TileOperand

SIDE: Final = 4
_ROW: Final = VectorType(SIDE, FLOAT)
_TILE: Final = VectorType(SIDE * SIDE, FLOAT)


class Tiles:
    """Operations on tiles, as `tlx.target.matrix_unit.TileOperations` describes them."""

    def __init__(self, b: Builder, dot: Dot, attributes: Sequence[str], *, rows: int, emulate: bool) -> None:
        self.b = b

    def enter(self) -> None:
        """Nothing: the unit has no mode."""

    def leave(self) -> None:
        """Nothing: the unit has no mode."""

    def zero(self, place: int) -> Value:
        """Zeros."""
        return Keyword(_TILE, "zeroinitializer")

    def load(self, place: int, address: TileAddress) -> Value:
        """Four rows."""
        return self.from_rows(place, self._lines(address, SIDE))

    def store(self, tile: Value, address: TileAddress) -> None:
        """Four rows."""
        base = self.b.gep(I8, address.pointer, address.offset)
        for number, row in enumerate(self.rows(tile)):
            self.b.store(row, self.b.gep(I8, base, number * address.stride), 1)

    def rows(self, tile: Value) -> list[Value]:
        """A register for each row."""
        return [self.b.shuffle(tile, None, range(SIDE * row, SIDE * (row + 1))) for row in range(SIDE)]

    def from_rows(self, place: int, rows: Sequence[Value]) -> Value:
        """The rows one after the other."""
        upper, lower = (self.b.shuffle(x, y, range(2 * SIDE)) for x, y in (rows[:2], rows[2:]))
        return self.b.shuffle(upper, lower, range(4 * SIDE))

    def load_a(self, address: TileAddress, groups: int) -> TileOperand:
        """Rows of `groups` floats, turned: a register for each column."""
        rows = self._lines(address, SIDE, VectorType(groups, FLOAT))
        upper, lower = (self.b.shuffle(x, y, range(2 * groups)) for x, y in (rows[:2], rows[2:]))
        columns = ([column + groups * row for row in range(SIDE)] for column in range(groups))
        return tuple(self.b.shuffle(upper, lower, column) for column in columns)

    def load_b(self, address: TileAddress, groups: int, *, streaming: bool) -> TileOperand:
        """A register for each row of B."""
        return tuple(self._lines(address, groups))

    def product(self, groups: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """The outer product: here the unit's instruction would be called."""
        a = self.b.shuffle(lhs, None, [row for row in range(SIDE) for _ in range(SIDE)])
        b = self.b.shuffle(rhs, None, [column for _ in range(SIDE) for column in range(SIDE)])
        return self.b.fma(a, b, acc)

    def phi(self, place: int, name: str) -> Instruction:
        """A phi of a tile."""
        return self.b.emit("phi", _TILE, [], f"phi {_TILE} ", name)

    def from_phi(self, place: int, value: Value) -> Value:
        """The same value."""
        return value

    def to_phi(self, tile: Value) -> Value:
        """The same value."""
        return tile

    def _lines(self, address: TileAddress, count: int, type_: VectorType = _ROW) -> list[Value]:
        base = self.b.gep(I8, address.pointer, address.offset)
        return [self.b.load(type_, self.b.gep(I8, base, line * address.stride), 1) for line in range(count)]


TARGET: Final = Target(
    name="quad",
    title="x86-64 with an imaginary matrix unit for floats",
    matrix=MatrixUnit(
        kinds=(
            TileKind(
                rows=SIDE,
                columns=SIDE,
                step_bytes=16,
                registers=8,
                grid=(2, 4),
                dots=(Dot(("float", "f"), ("float", "f"), "float", 1, "sse2"),),
                cycles=2,
            ),
        ),
        operations=Tiles,
        accumulators="registers",
    ),
    features=("+sse2",),
    requires=("sse2",),
)
