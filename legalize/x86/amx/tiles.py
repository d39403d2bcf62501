"""Instructions on AMX tiles of 16 rows x 64 bytes, as values, and the forms of them that run without AMX.

Tile products that LLVM's scalarisation of AMX leaves alone, as functions on tiles in memory.

X86LowerAMXIntrinsics (LLVM 14 to 22) makes loops of the products of bfloat and of bytes, not of those of half:

    tdpfp16ps     c[m][n] += sum over k of a[m][2k] * b[k][2n] + a[m][2k + 1] * b[k][2n + 1]

Instructions on AMX tiles of 16 rows x 64 bytes, and the form of them that LLVM's scalarisation takes.

LLVM can emulate tiles (`-enable-x86-scalar-amx`) where every tile passes through `<256 x i32>`, the only form in which
it goes from block to block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.types import FLOAT, HALF, I8, I16, I32, I64, VOID, X86_AMX, ArrayType, FunctionType, VectorType
from tlx.ir.values import ConstInt, Global, Value, const_int
from tlx.lower.legalize.driver import feature_attributes

if TYPE_CHECKING:
    from tlx.ir.instructions import Instruction
    from tlx.ir.module import Module
    from tlx.target.target import Target

UNSCALARISED_PRODUCTS: Final = ("tdpfp16ps",)
"""The products that it leaves alone."""
_SIDE: Final = 16
_TILE_WORDS: Final = VectorType(_SIDE * _SIDE, I32)
_PAIRS: Final = VectorType(_SIDE, I32)
_HALVES: Final = VectorType(2 * _SIDE, HALF)
_FLOATS: Final = VectorType(_SIDE, FLOAT)
_ALIGN: Final = 64


def product_scratch(b: Builder) -> list[Value]:
    """Memory for three tiles, which all products of a function may share."""
    return [b.alloca(_TILE_WORDS, part) for part in "cab"]


def call_product_function(
    b: Builder, target: Target, name: str, words: Sequence[Value], memory: Sequence[Value]
) -> Value:
    """The words of `acc + lhs @ rhs`, of 16 rows x 64 bytes each.

    Args:
        b: Where to emit.
        target: The machine, which has the product's feature.
        name: The instruction.
        words: The words of acc, lhs and rhs.
        memory: Where they are put.
    """
    for value, place in zip(words, memory, strict=True):
        b.store(value, place, _ALIGN)
    places = [b.retype(place, I8) for place in memory]
    type_ = FunctionType(VOID, tuple(place.type for place in places))
    b.call(Global(b.pointer(type_), _product_function(b.module, target, name)), type_, places)
    return b.load(_TILE_WORDS, memory[0], _ALIGN, "words")


def _product_function(module: Module, target: Target, name: str) -> str:
    """The function for a product, made when it is first wanted."""
    stem = f"tlx.{name}"
    made = next((f.name for f in module.functions if f.name.startswith(stem)), "")
    if made:
        return made
    made = module.global_names.fresh(stem)
    parameters = [(module.pointer_to(I8), "noalias", part) for part in "cab"]
    attributes = " ".join(["nounwind", "noinline", *feature_attributes(target)])
    function = new_function(module, made, parameters, attributes)
    b = Builder(module, function)
    c, lhs, rhs = (argument.value for argument in function.arguments)
    with b.loop(0, _SIDE, name="m") as row:
        place = b.gep(_FLOATS, c, row.index)
        start = b.load(_FLOATS, place, _ALIGN)
        pairs = b.gep(_PAIRS, lhs, row.index)
        with b.loop(0, _SIDE, carry=[start], name="k") as step:
            pair = b.splat(b.load(I32, b.gep(I32, pairs, step.index), 4), _SIDE)
            step.next(_pair_sum(b, pair, b.load(_PAIRS, b.gep(_PAIRS, rhs, step.index), _ALIGN), step.carried[0]))
        b.store(step.results[0], place, _ALIGN)
    b.ret()
    return made


def _pair_sum(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Both products of each lane's pair of halves, added to the lane's sum."""
    halves = [b.cast("bitcast", value, _HALVES) for value in (lhs, rhs)]
    for place in range(2):
        lanes = range(place, 2 * _SIDE, 2)
        x, y = (b.cast("fpext", b.shuffle(value, None, lanes), _FLOATS) for value in halves)
        total = b.fma(x, y, total)
    return total


ROWS: Final = 16
ROW_BYTES: Final = 64
_WORD_BYTES: Final = 4
_WORDS: Final = VectorType(256, I32)


@dataclass(frozen=True, slots=True)
class PlacedTile:
    """A tile, and where in memory it goes: `offset` bytes behind `pointer`, its rows `stride` bytes apart."""

    tile: Value
    pointer: Value
    offset: int
    stride: int


class TileEmitter:
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
        return self._made("tilezero", [_i16(ROWS), _i16(ROW_BYTES)])

    def product(self, name: str, depth: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """`acc + lhs @ rhs` by an instruction such as `tdpbf16ps`; `depth`: bytes of a row of `lhs`."""
        if self.emulate and name in UNSCALARISED_PRODUCTS:
            self.products = self.products or product_scratch(self.b)
            words = [self.words[str(tile)] for tile in (acc, lhs, rhs)]
            return self._tile(call_product_function(self.b, self.target, name, words, self.products))
        return self._made(name, [_i16(ROWS), _i16(ROW_BYTES), _i16(depth), acc, lhs, rhs])

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
        return self._made(name, [_i16(rows), _i16(row_bytes), address, const_int(I64, stride)])

    def store(self, placed: PlacedTile) -> None:
        """Store a tile at its place."""
        address = self.b.retype(self.b.gep(I8, placed.pointer, placed.offset), I8)
        args = [_i16(ROWS), _i16(ROW_BYTES), address, const_int(I64, placed.stride), placed.tile]
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


def _i16(number: int) -> ConstInt:
    return const_int(I16, number)
