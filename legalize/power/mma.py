"""`mma`: Power10's matrix-multiply assist for float, double, bfloat, half and bytes; all else as `vsx`.

Power ISA 3.1, volume I, section 7.6.1.2: eight accumulators of four registers. XVF32GERPP, XVBF16GER2PP, XVF16GER2PP
and XVI8GER4PP (signed times unsigned bytes) add outer products of two registers to 4x4 sums, XVF64GERPP that of a pair
of registers and a register to 4x2 sums:

    A 4 x v      B v x 4      C 4 x 4        v = 1 float, 2 bfloat or half, 4 bytes: a word of each row or column
    A 4 x 1      B 1 x 2      C 4 x 2        double

A register tile is a grid of 2x4 accumulators. A step of K is four groups of v: four registers of each tile of A, which
is packed in groups, and of B. Up to four steps are unrolled, eight for double.

Rewrite, 4x4 floats:
    %acc = phi <16 x float> [ zeroinitializer, %e ], [ %n, %l ]    ->    phi <512 x i1>, xxsetaccz
    %a = permute(load(%pa, <1, 4, 4, 1>))                                4 loads
    %b = permute(load(%pb, <1, 4, 4, 1>))                                4 loads
    %n = mma(%acc, %a, %b)                                               4 xvf32gerpp, on <16 x i8>

Unsigned by signed bytes are multiplied in the other order, so that accumulators hold transposed sums. Where signs are
equal, those of A are flipped as it is packed, and sums of B's columns correct the result:
`tlx.lower.to_tiles.select.selection`.
"""

# ruff: noqa: ARG002 (all units take the same)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tlx.ir.types import DOUBLE, FLOAT, I1, I8, I32, StructType, Type, VectorType
from tlx.legalize.power.vsx import TARGET as VSX
from tlx.target.instructions.compilers import CompilerVersions
from tlx.target.instructions.dots import Dot
from tlx.target.matrix_unit import MatrixUnit, MatrixUnitCosts, TileKind

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.instructions import Instruction
    from tlx.ir.values import Value
    from tlx.target.matrix_unit import TileAddress, TileOperand

ROWS: Final = 4
_REGISTER_BYTES: Final = 16
_ACCUMULATOR: Final = VectorType(512, I1)
_PAIR: Final = VectorType(256, I1)
_REGISTER: Final = VectorType(16, I8)
_ROWS_OF_ACCUMULATOR: Final = StructType((_REGISTER,) * ROWS)
_INSTRUCTIONS: Final = {
    ("float", "f", "f"): "xvf32gerpp",
    ("double", "f", "f"): "xvf64gerpp",
    ("bfloat", "f", "f"): "xvbf16ger2pp",
    ("half", "f", "f"): "xvf16ger2pp",
    ("i8", "s", "u"): "xvi8ger4pp",
    ("i8", "u", "s"): "xvi8ger4pp",
}
"""Products, by element type and signs of A and B."""
_SUMS: Final = {"float": VectorType(4, FLOAT), "i32": VectorType(4, I32), "double": VectorType(2, DOUBLE)}

_LOADS_AHEAD: Final = 14
"""LLVM's model of Power10 holds 44 micro-operations, which leave in order: loads come early."""


class MmaAccumulators:
    """Operations on accumulators, as `tlx.target.matrix_unit.TileOperations` describes them.

    Attributes:
        b: The builder.
        instruction: The instruction that multiplies.
        sums: The type of a row of sums.
        swaps: Whether the operands are swapped, so that an accumulator holds transposed sums.
    """

    def __init__(self, b: Builder, dot: Dot, attributes: Sequence[str], *, rows: int, emulate: bool) -> None:
        self.b = b
        self.instruction = _INSTRUCTIONS[dot.lhs[0], dot.lhs[1], dot.rhs[1]]
        self.sums = _SUMS[dot.accumulator]
        self.swaps = (dot.lhs[1], dot.rhs[1]) == ("u", "s")

    def enter(self) -> None:
        """Nothing: accumulators have no mode."""

    def leave(self) -> None:
        """Nothing: accumulators have no mode."""

    def zero(self, place: int) -> Value:
        """XXSETACCZ."""
        return self.b.call_named("llvm.ppc.mma.xxsetaccz", _ACCUMULATOR, [], "tile").value

    def load(self, place: int, address: TileAddress) -> Value:
        """Loads of rows."""
        return self.from_rows(place, self._lines(address, ROWS, self.sums))

    def store(self, tile: Value, address: TileAddress) -> None:
        """Stores of rows."""
        base = self.b.gep(I8, address.pointer, address.offset)
        for number, row in enumerate(self.rows(tile)):
            self.b.store(row, self.b.gep(I8, base, number * address.stride), 1)

    def rows(self, tile: Value) -> list[Value]:
        """XXMFACC; element i of the result is row i in either byte order."""
        b = self.b
        rows = b.call_named("llvm.ppc.mma.disassemble.acc", _ROWS_OF_ACCUMULATOR, [tile], "rows").value
        registers = [
            b.value("extractvalue", _REGISTER, [rows], f"extractvalue {rows.typed}, {number}", "row")
            for number in range(ROWS)
        ]
        sums = [b.cast("bitcast", register, self.sums) for register in registers]
        return _transposed(b, sums) if self.swaps else sums

    def from_rows(self, place: int, rows: Sequence[Value]) -> Value:
        """XXMTACC; on little-endian machines, the first operand is the last row."""
        sums = _transposed(self.b, rows) if self.swaps else rows
        registers = [self.b.cast("bitcast", row, _REGISTER) for row in reversed(sums)]
        return self.b.call_named("llvm.ppc.mma.assemble.acc", _ACCUMULATOR, registers, "tile").value

    def load_a(self, address: TileAddress, groups: int) -> TileOperand:
        """A register, or a pair of them for doubles, for each line."""
        if self.sums != _SUMS["double"]:
            return self.load_b(address, groups, streaming=False)
        halves = [replace(address, offset=address.offset + half) for half in (_REGISTER_BYTES, 0)]
        lines = zip(*(self._lines(half, groups, _REGISTER) for half in halves), strict=True)
        return tuple(self.b.call_named("llvm.ppc.vsx.assemble.pair", _PAIR, pair, "pair").value for pair in lines)

    def load_b(self, address: TileAddress, groups: int, *, streaming: bool) -> TileOperand:
        """A register for each line."""
        return tuple(self._lines(address, groups, _REGISTER))

    def product(self, groups: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """XV*GER*PP."""
        operands = [rhs, lhs] if self.swaps else [lhs, rhs]
        return self.b.call_named(f"llvm.ppc.mma.{self.instruction}", _ACCUMULATOR, [acc, *operands], "tile").value

    def phi(self, place: int, name: str) -> Instruction:
        """A phi of an accumulator."""
        return self.b.emit("phi", _ACCUMULATOR, [], f"phi {_ACCUMULATOR} ", name)

    def from_phi(self, place: int, value: Value) -> Value:
        """The accumulator itself."""
        return value

    def to_phi(self, tile: Value) -> Value:
        """The accumulator itself."""
        return tile

    def _lines(self, address: TileAddress, count: int, type_: Type) -> list[Value]:
        base = self.b.gep(I8, address.pointer, address.offset)
        return [self.b.load(type_, self.b.gep(I8, base, number * address.stride), 1) for number in range(count)]


def _transposed(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """The columns of 4x4 words: XXMRGHW and XXMRGLW, then XXPERMDI."""
    upper, lower = rows[:2], rows[2:]
    low = [b.shuffle(x, y, [0, 4, 1, 5]) for x, y in (upper, lower)]
    high = [b.shuffle(x, y, [2, 6, 3, 7]) for x, y in (upper, lower)]
    return [b.shuffle(x, y, mask) for x, y in (low, high) for mask in ([0, 1, 4, 5], [2, 3, 6, 7])]


def _float_dot(operand: str, accumulator: str, width: int) -> Dot:
    return Dot((operand, "f"), (operand, "f"), accumulator, width, "mma")


TARGET: Final = replace(
    VSX.on_cpu("pwr10"),
    name="mma",
    title="Power10 with MMA (float, double, bfloat, half, bytes)",
    features=(*VSX.features, "+power9-vector", "+power10-vector", "+paired-vector-memops", "+mma"),
    matrix=MatrixUnit(
        kinds=(
            TileKind(
                rows=ROWS,
                columns=4,
                step_bytes=_REGISTER_BYTES,
                registers=8,
                grid=(2, 4),
                dots=(
                    _float_dot("float", "float", 1),
                    _float_dot("bfloat", "float", 2),
                    _float_dot("half", "float", 2),
                    Dot(("i8", "s"), ("i8", "u"), "i32", 4, "mma"),
                    Dot(("i8", "u"), ("i8", "s"), "i32", 4, "mma"),
                ),
                cycles=2,
                unroll=4,
                loads_ahead=_LOADS_AHEAD,
            ),
            TileKind(
                rows=ROWS,
                columns=2,
                step_bytes=_REGISTER_BYTES,
                registers=8,
                grid=(2, 4),
                dots=(_float_dot("double", "double", 1),),
                cycles=1,
                unroll=8,
                loads_ahead=_LOADS_AHEAD,
            ),
        ),
        operations=MmaAccumulators,
        costs=MatrixUnitCosts(),
        a_layout="groups",
        accumulators="registers",
    ),
    compilers=CompilerVersions(16),  # LLVM 14 and 15 compile unsigned bytes wrong
    triples=("powerpc64le-linux-gnu",),  # the operands of `assemble.acc` are in this byte order
    requires=("mma", "arch_3_1"),
)
