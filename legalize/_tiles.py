"""Instructions on AMX tiles of 16 rows x 64 bytes, and the form of them that LLVM's scalarisation takes.

LLVM can emulate tiles (`-enable-x86-scalar-amx`) where every tile passes through `<256 x i32>`, the only form in which
it goes from block to block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tlx.ir.types import I8, I16, I32, I64, VOID, X86_AMX, ArrayType, VectorType
from tlx.ir.values import ConstInt, Value, const_int
from tlx.legalize._scalar import UNKNOWN, call_product, scratch

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.module import Instruction
    from tlx.target import Target

ROWS: Final = 16
ROW_BYTES: Final = 64
_WORD_BYTES: Final = 4
_WORDS: Final = VectorType(256, I32)


@dataclass(frozen=True, slots=True)
class Placed:
    """A tile, and where in memory it goes: `offset` bytes behind `pointer`, its rows `stride` bytes apart."""

    tile: Value
    pointer: Value
    offset: int
    stride: int


class Tiles:
    """Emits instructions on whole tiles.

    Attributes:
        b: Where code is emitted.
        target: The machine.
        emulate: Whether tiles pass through words.
        words: The words of each tile that passed through them, by the tile's name.
        copy: 16 rows x 64 bytes for tiles that LLVM's scalarisation cannot load from where they lie.
        products: Room for the three tiles of products that it does not know.
    """

    def __init__(self, b: Builder, target: Target, *, emulate: bool) -> None:
        self.b = b
        self.target = target
        self.emulate = emulate
        self.words: dict[str, Value] = {}
        self.copy: Value | None = None
        self.products: list[Value] = []

    def zero(self) -> Value:
        """A tile of zeros."""
        return self._made("tilezero", [_short(ROWS), _short(ROW_BYTES)])

    def product(self, name: str, depth: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """`acc + lhs @ rhs` by an instruction such as `tdpbf16ps`; `depth`: bytes of a row of `lhs`."""
        if self.emulate and name in UNKNOWN:
            self.products = self.products or scratch(self.b)
            words = [self.words[str(tile)] for tile in (acc, lhs, rhs)]
            return self._tile(call_product(self.b, self.target, name, words, self.products))
        return self._made(name, [_short(ROWS), _short(ROW_BYTES), _short(depth), acc, lhs, rhs])

    def load(
        self,
        pointer: Value,
        offset: int,
        stride: int,
        shape: tuple[int, int] = (ROWS, ROW_BYTES),
        *,
        passing: bool = False,
    ) -> Value:
        """The tile `offset` bytes behind `pointer`, its rows `stride` bytes apart.

        TILELOADDT1 leaves the first cache to others; LLVM's scalarisation does not know it.
        """
        b = self.b
        rows, row_bytes = shape
        address = b.retype(b.gep(I8, pointer, offset), I8)
        name = "tileloaddt164" if passing and not self.emulate else "tileloadd64"
        if self.emulate and stride % _WORD_BYTES:
            address, stride = self._copied(address, stride, shape), ROW_BYTES
        return self._made(name, [_short(rows), _short(row_bytes), address, const_int(I64, stride)])

    def store(self, placed: Placed) -> None:
        """Store a tile at its place."""
        address = self.b.retype(self.b.gep(I8, placed.pointer, placed.offset), I8)
        args = [_short(ROWS), _short(ROW_BYTES), address, const_int(I64, placed.stride), placed.tile]
        self.b.call_named("llvm.x86.tilestored64.internal", VOID, args)

    def phi(self, name: str) -> Instruction:
        """A phi of a tile or its words, without incoming values."""
        type_ = _WORDS if self.emulate else X86_AMX
        return self.b.emit("phi", type_, [], f"phi {type_} ", name)

    def of_phi(self, value: Value) -> Value:
        """The tile that is in a phi; a tile is itself."""
        return self._tile(value) if value.type == _WORDS else value

    def across_blocks(self, tile: Value) -> Value:
        """What a phi takes for a tile."""
        return self.words.get(str(tile), tile)

    def _made(self, name: str, args: list[Value]) -> Value:
        """Call an AMX intrinsic that returns a tile."""
        b = self.b
        tile = b.call_named(f"llvm.x86.{name}.internal", X86_AMX, args, "tile").value
        if not self.emulate:
            return tile
        return self._tile(b.value("bitcast", _WORDS, [tile], f"bitcast {tile.typed} to {_WORDS}", "words"))

    def _tile(self, words: Value) -> Value:
        tile = self.b.value("bitcast", X86_AMX, [words], f"bitcast {words.typed} to {X86_AMX}", "tile")
        self.words[str(tile)] = words
        return tile

    def _copied(self, address: Value, stride: int, shape: tuple[int, int]) -> Value:
        """A copy of a tile of so many rows and bytes a row, its rows `ROW_BYTES` apart.

        The instruction loads rows any number of bytes apart. LLVM's scalarisation of it (X86LowerAMXIntrinsics, the
        same in LLVM 14, 19 and 22) loads words and takes `stride / 4`, rounded down, for the words between two rows.
        """
        b = self.b
        if self.copy is None:
            self.copy = b.alloca(ArrayType(ROWS * ROW_BYTES, I8), "tile.copy")
        words_of_row = VectorType(shape[1] // _WORD_BYTES, I32)
        for row in range(shape[0]):
            words = b.load(words_of_row, b.gep(I8, address, row * stride), 1)
            b.store(words, b.gep(I8, self.copy, row * ROW_BYTES), ROW_BYTES)
        return b.retype(self.copy, I8)


def _short(number: int) -> ConstInt:
    return const_int(I16, number)
