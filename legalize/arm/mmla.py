# ruff: noqa: ARG002 (all units take the same)
"""The matrix unit of Advanced SIMD and SVE: BFMMLA, SMMLA, UMMLA and USMMLA multiply vector registers as small tiles.

Each 16 bytes of a register hold two rows of 8 bytes of A, two columns of B or 2x2 sums; A and B are in groups of 8
bytes along K. A tile is a register: of 2 rows, and 2 columns in each 16 bytes, which all multiply the same rows of A:

    A   a00 .. a07 a10 .. a17                                  for SVE, repeated in each 16 bytes
    B   b00 .. b70 b01 .. b71   b02 .. b72 b03 .. b73          8 bytes each: q = 4 bfloat or 8 bytes
    C   c00  c01   c10  c11     c02  c03   c12  c13

Arm Architecture Reference Manual for A-profile, C7.2 and C8.2: BFMMLA, SMMLA, UMMLA, USMMLA, LD1RQB.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import BFLOAT, FLOAT, I8, I32, I64, Type, VectorType, bits_of
from tlx.ir.values import Keyword, const_int
from tlx.legalize.arm.scalable import GRANULE_BYTES, from_scalable, mangled, scalable, to_scalable
from tlx.target.instructions.dots import Dot
from tlx.target.matrix_unit import MatrixUnit, MatrixUnitCosts, TileKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlx.ir.builder import Builder
    from tlx.ir.instructions import Instruction
    from tlx.ir.values import Value
    from tlx.target.matrix_unit import TileAddress, TileOperand

_GROUP_BYTES: Final = 8
_ROWS: Final = 2
_INSTRUCTIONS: Final = {
    ("bfloat", "f", "f"): "bfmmla",
    ("i8", "s", "s"): "smmla",
    ("i8", "u", "u"): "ummla",
    ("i8", "u", "s"): "usmmla",
    ("i8", "s", "u"): "usmmla",
}
"""Products, by element type and signs of A and B."""
_SWAPPED: Final = ("s", "u")
"""Signs whose product takes B first: tiles of sums are then transposed."""


class MmlaTiles:
    """Instructions on tiles, as `tlx.target.matrix_unit.TileOperations` describes them.

    Args:
        granules: Vector registers have so many times 16 bytes.
        b: The builder.
        dot: The product.
        attributes: Attributes of functions for the target.
        emulate: Not used.
    """

    def __init__(
        self, granules: int, b: Builder, dot: Dot, attributes: Sequence[str], *, rows: int, emulate: bool
    ) -> None:
        self.b = b
        self.granules = granules
        self.instruction = _INSTRUCTIONS[dot.lhs[0], dot.lhs[1], dot.rhs[1]]
        self.operand: Type = BFLOAT if dot.lhs[0] == "bfloat" else I8
        self.sum: Type = FLOAT if dot.accumulator == "float" else I32
        self.tile = VectorType(4 * granules, self.sum)
        self.is_swapped = (dot.lhs[1], dot.rhs[1]) == _SWAPPED

    def enter(self) -> None:
        """Nothing: tiles are vector registers."""

    def leave(self) -> None:
        """Nothing: tiles are vector registers."""

    def zero(self, place: int) -> Value:
        """MOVI."""
        return Keyword(self.tile, "zeroinitializer")

    def load(self, place: int, address: TileAddress) -> Value:
        """Two rows, interleaved."""
        type_ = VectorType(2 * self.granules, self.sum)
        return self.from_rows(place, [self._load(type_, address, row * address.stride) for row in range(_ROWS)])

    def store(self, tile: Value, address: TileAddress) -> None:
        """Two rows."""
        for number, row in enumerate(self.rows(tile)):
            place = self.b.gep(I8, address.pointer, address.offset + number * address.stride)
            self.b.store(row, self.b.retype(place, row.type), 4)

    def rows(self, tile: Value) -> Sequence[Value]:
        """UZP1, UZP2 of pairs of sums, or of sums where tiles are transposed."""
        return [
            self.b.shuffle(tile, None, [self._lane(row, n) for n in range(2 * self.granules)]) for row in range(_ROWS)
        ]

    def from_rows(self, place: int, rows: Sequence[Value]) -> Value:
        """ZIP1, ZIP2 of pairs of sums, or of sums where tiles are transposed."""
        columns = 2 * self.granules
        order = {self._lane(row, column): row * columns + column for row in range(_ROWS) for column in range(columns)}
        return self.b.shuffle(rows[0], rows[1], [order[lane] for lane in range(2 * columns)])

    def _lane(self, row: int, column: int) -> int:
        """The lane of a sum."""
        granule, column = divmod(column, 2)
        return 4 * granule + (2 * column + row if self.is_swapped else 2 * row + column)

    def load_a(self, address: TileAddress, groups: int) -> TileOperand:
        """LDR; on longer registers LD1RQ, together with the product."""
        type_ = VectorType(GRANULE_BYTES * 8 // bits_of(self.operand), self.operand)
        return tuple(self._load(type_, address, group * address.stride) for group in range(groups))

    def load_b(self, address: TileAddress, groups: int, *, streaming: bool) -> TileOperand:
        """LDR. Words: LLVM has no registers of bfloat for vectors of known length."""
        type_ = VectorType(4 * self.granules, I32)
        return tuple(self._load(type_, address, group * address.stride) for group in range(groups))

    def product(self, groups: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """BFMMLA, SMMLA, UMMLA, USMMLA."""
        b, name, is_bfloat = self.b, self.instruction, self.operand == BFLOAT
        if self.granules == 1:
            type_ = VectorType(GRANULE_BYTES * 8 // bits_of(self.operand), self.operand)
            lhs, rhs = (b.cast("bitcast", operand, type_) for operand in (lhs, rhs))
            factors = (rhs, lhs) if self.is_swapped else (lhs, rhs)
            name = f"llvm.aarch64.neon.{name}{'' if is_bfloat else '.v4i32.v16i8'}"
            return b.call_named(name, self.tile, [acc, *factors], "acc").value
        rows, columns = self._repeated(lhs), to_scalable(b, rhs, self.operand)
        factors = (columns, rows) if self.is_swapped else (rows, columns)
        args = [to_scalable(b, acc, self.sum), *factors]
        name = f"llvm.aarch64.sve.{name}{'' if is_bfloat else '.nxv4i32'}"
        return from_scalable(b, b.call_named(name, scalable(self.sum), args, "acc").value, self.tile)

    def _repeated(self, rows: Value) -> Value:
        """DUP of a quadword, which LLVM combines with its load."""
        kind = scalable(self.operand)
        args = [to_scalable(self.b, rows, self.operand), const_int(I64, 0)]
        return self.b.call_named(f"llvm.aarch64.sve.dupq.lane.{mangled(kind)}", kind, args, "a").value

    def phi(self, place: int, name: str) -> Instruction:
        """A phi of a register."""
        return self.b.emit("phi", self.tile, [], f"phi {self.tile} ", name)

    def from_phi(self, place: int, value: Value) -> Value:
        """The value itself."""
        return value

    def to_phi(self, tile: Value) -> Value:
        """The tile itself."""
        return tile

    def _load(self, type_: VectorType, address: TileAddress, offset: int) -> Value:
        place = self.b.gep(I8, address.pointer, address.offset + offset)
        align = bits_of(self.operand) // 8
        return self.b.load(type_, self.b.retype(place, type_), align)


_DOTS: Final = (
    Dot(("bfloat", "f"), ("bfloat", "f"), "float", 4, "bf16"),
    Dot(("i8", "s"), ("i8", "s"), "i32", 8, "i8mm"),
    Dot(("i8", "u"), ("i8", "u"), "i32", 8, "i8mm"),
    Dot(("i8", "u"), ("i8", "s"), "i32", 8, "i8mm"),
    Dot(("i8", "s"), ("i8", "u"), "i32", 8, "i8mm"),
)
_UNIT_COSTS: Final = MatrixUnitCosts(
    load_cycles=(0.4, 0.5, 0.6, 2.0),
    l1_bypassing_load_cycles=(0.5, 0.6),
    store_cycles=(1.5, 2.0, 4.0),
    packed_row_cycles=(1.0, 1.2, 3.0),
    transposed_row_cycles=(2.0, 4.0, 8.0),
)
"""Counted for three loads and four vector instructions a cycle (Neoverse V1 and V2)."""


def mmla_unit(vector_bytes: int, rate: float) -> MatrixUnit:
    """The matrix unit of registers of so many bytes, `rate` of which are multiplied in a cycle."""
    granules = vector_bytes // GRANULE_BYTES
    kind = TileKind(
        rows=_ROWS,
        columns=2 * granules,
        step_bytes=_GROUP_BYTES,
        registers=24,
        grid=(4, 6),
        dots=_DOTS,
        cycles=1 / rate,
    )
    return MatrixUnit(
        kinds=(kind,),
        operations=partial(MmlaTiles, granules),
        costs=_UNIT_COSTS,
        a_layout="groups",
        accumulators="registers",
    )
