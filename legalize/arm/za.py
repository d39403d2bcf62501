# ruff: noqa: ARG002 (all units take the same)
"""The matrix unit of SME: outer products of two vector registers of streaming mode are added to tiles of ZA.

With registers of v words, each of the tiles ZA0.S to ZA3.S holds v x v sums. A register has a word of each row of A or
of each column of B: a float, two bfloats or halves, four bytes along K.

    A v x g      B g x v      ZAn v x v      g = 1 float, 2 bfloat or half, 4 bytes

The tiles are state, which instructions name by number: the place of an accumulator in its grid. Kernels enter streaming
mode and own ZA by attributes, from which LLVM's backend makes SMSTART and SMSTOP; memory is allocated before.

Arm Architecture Reference Manual for A-profile, C9.2 (SME instructions): FMOPA, BFMOPA, SMOPA, UMOPA, USMOPA, SUMOPA,
LD1W, ST1W, ZERO; Procedure Call Standard for the Arm 64-bit Architecture: __arm_tpidr2_save, __arm_tpidr2_restore.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, I8, I32, VOID, Type, VectorType, bits_of
from tlx.ir.values import const_int
from tlx.legalize.arm.scalable import GRANULE_BYTES, mangled, scalable, to_scalable
from tlx.target.instructions.dots import Dot
from tlx.target.matrix_unit import MatrixUnit, MatrixUnitCosts, TileKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlx.ir.builder import Builder
    from tlx.ir.instructions import Instruction
    from tlx.ir.values import Value
    from tlx.target.matrix_unit import TileAddress, TileOperand

WORD_BYTES: Final = 4
_TILES: Final = 4
_ZERO_MASK: Final = 0b00010001
"""ZERO's mask of ZA0.S: a bit for each of the eight tiles of doublewords, of which a tile of words is two."""
_PATTERNS: Final = {4: 4, 8: 8, 16: 9, 32: 10, 64: 11}
"""PTRUE's VL4, VL8, ..., by elements of a register."""
_ELEMENTS: Final[dict[str, Type]] = {"float": FLOAT, "bfloat": BFLOAT, "half": HALF, "i8": I8}
_INSTRUCTIONS: Final = {
    ("float", "f", "f"): "mopa",
    ("bfloat", "f", "f"): "mopa.wide",
    ("half", "f", "f"): "mopa.wide",
    ("i8", "s", "s"): "smopa.wide",
    ("i8", "u", "u"): "umopa.wide",
    ("i8", "u", "s"): "usmopa.wide",
    ("i8", "s", "u"): "sumopa.wide",
}
"""Products, by element type and signs of A and B."""


class ZaTiles:
    """Instructions on tiles of ZA, as `tlx.target.matrix_unit.TileOperations` describes them.

    Args:
        vector_bytes: Bytes of a vector register in streaming mode.
        b: The builder.
        dot: The product.
        attributes: Attributes of functions for the target.
        emulate: Not used.
    """

    def __init__(
        self, vector_bytes: int, b: Builder, dot: Dot, attributes: Sequence[str], *, rows: int, emulate: bool
    ) -> None:
        self.b = b
        self.words = vector_bytes // WORD_BYTES
        self.instruction = _INSTRUCTIONS[dot.lhs[0], dot.lhs[1], dot.rhs[1]]
        self.element = _ELEMENTS[dot.lhs[0]]

    def enter(self) -> None:
        """Nothing: attributes of the function say that it enters the mode."""

    def leave(self) -> None:
        """Nothing: attributes of the function say that it enters the mode."""

    def zero(self, place: int) -> Value:
        """ZERO."""
        self.b.call_named("llvm.aarch64.sme.zero", VOID, [const_int(I32, _ZERO_MASK << place)])
        return const_int(I32, place)

    def load(self, place: int, address: TileAddress) -> Value:
        """LD1W of horizontal slices."""
        self._move("ld1w", const_int(I32, place), address)
        return const_int(I32, place)

    def store(self, tile: Value, address: TileAddress) -> None:
        """ST1W of horizontal slices."""
        self._move("st1w", tile, address)

    def rows(self, tile: Value) -> Sequence[Value]:
        """Not called: accumulators are read through memory."""
        raise NotImplementedError

    def from_rows(self, place: int, rows: Sequence[Value]) -> Value:
        """Not called: accumulators are read through memory."""
        raise NotImplementedError

    def load_a(self, address: TileAddress, groups: int) -> TileOperand:
        """A register for each group."""
        type_ = VectorType(self.words, I32)
        base = self.b.gep(I8, address.pointer, address.offset)
        places = [self.b.retype(self.b.gep(I8, base, group * address.stride), type_) for group in range(groups)]
        align = bits_of(self.element) // 8
        return tuple(self._register(self.b.load(type_, place, align)) for place in places)

    def load_b(self, address: TileAddress, groups: int, *, streaming: bool) -> TileOperand:
        """A register for each group."""
        return self.load_a(address, groups)

    def product(self, groups: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """FMOPA, BFMOPA, SMOPA, UMOPA, USMOPA, SUMOPA."""
        predicate = self._all_of(self.element)
        name = f"llvm.aarch64.sme.{self.instruction}.{mangled(scalable(self.element))}"
        self.b.call_named(name, VOID, [acc, predicate, predicate, lhs, rhs])
        return acc

    def phi(self, place: int, name: str) -> Instruction:
        """A phi of the number of a tile, which nothing uses."""
        return self.b.emit("phi", I32, [], f"phi {I32} ", name)

    def from_phi(self, place: int, value: Value) -> Value:
        """The number of the tile, as a constant."""
        return const_int(I32, place)

    def to_phi(self, tile: Value) -> Value:
        """The number of the tile."""
        return tile

    def _register(self, words: Value) -> Value:
        """A register of elements; bfloat by way of words, as LLVM 19 cannot select some loads of it."""
        if self.element == BFLOAT:
            return self.b.cast("bitcast", to_scalable(self.b, words, I32), scalable(BFLOAT))
        return to_scalable(self.b, words, self.element)

    def _move(self, instruction: str, tile: Value, address: TileAddress) -> None:
        """Load or store the slices of a tile."""
        base = self.b.gep(I8, address.pointer, address.offset)
        for row in range(self.words):
            place = self.b.gep(I8, base, row * address.stride)
            args = [self._all_of(I32), place, tile, const_int(I32, row)]
            self.b.call_named(f"llvm.aarch64.sme.{instruction}.horiz", VOID, args)

    def _all_of(self, element: Type) -> Value:
        """PTRUE of all elements of a register."""
        count = scalable(element).count
        elements = self.words * WORD_BYTES * 8 // bits_of(element)
        type_, pattern = VectorType(count, I1, scalable=True), const_int(I32, _PATTERNS[elements])
        return self.b.call_named(f"llvm.aarch64.sve.ptrue.nxv{count}i1", type_, [pattern], "all").value


def _float_dot(operand: str, width: int) -> Dot:
    return Dot((operand, "f"), (operand, "f"), "float", width, "sme")


_DOTS: Final = (
    _float_dot("float", 1),
    _float_dot("bfloat", 2),
    _float_dot("half", 2),
    *(Dot(("i8", lhs), ("i8", rhs), "i32", 4, "sme") for lhs in ("s", "u") for rhs in ("s", "u")),
)
_UNIT_COSTS: Final = MatrixUnitCosts(configure_cycles=200, store_cycles=(16.0, 24.0, 48.0))
"""Estimated: changes of mode cost hundreds of cycles where the unit is shared by cores."""


def za_unit(vector_bytes: int) -> MatrixUnit:
    """The matrix unit of ZA with vector registers of so many bytes in streaming mode."""
    scale = vector_bytes // GRANULE_BYTES
    kind = TileKind(
        rows=vector_bytes // WORD_BYTES,
        columns=vector_bytes // WORD_BYTES,
        step_bytes=4 * WORD_BYTES,
        registers=_TILES,
        grid=(2, 2),
        dots=_DOTS,
        cycles=4,
    )
    return MatrixUnit(
        kinds=(kind,),
        operations=partial(ZaTiles, vector_bytes),
        costs=_UNIT_COSTS,
        a_layout="groups",
        attributes=(
            '"aarch64_pstate_sm_body"',
            '"aarch64_new_za"',
            f"vscale_range({scale},{scale})",
        ),
    )
