"""AMX instructions on tiles of 16 rows x 64 bytes: on values, and in a form for emulation.

LLVM can emulate tiles (`-enable-x86-scalar-amx`) if every tile is cast to `<256 x i32>`, the only form in which it
crosses blocks. X86LowerAMXIntrinsics (LLVM 14 to 22) expands products of bfloat and of bytes to loops, but not those of
half; these are calls of a function on tiles in memory:

    tdpfp16ps     c[m][n] += sum over k of a[m][2k] * b[k][2n] + a[m][2k + 1] * b[k][2n + 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tlx.ir.builder.instructions import Builder, new_function
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.types import FLOAT, HALF, I8, I16, I32, I64, VOID, X86_AMX, ArrayType, FunctionType, VectorType
from tlx.ir.values import ConstInt, Global, Value, const_int

if TYPE_CHECKING:
    from tlx.target.hardware import Dot
    from tlx.target.matrix_unit import TilePlace

ROWS: Final = 16
ROW_BYTES: Final = 64


UNSCALARISED_PRODUCTS: Final = ("tdpfp16ps",)
"""Products that LLVM's scalarisation does not expand."""
_TILE_WORDS: Final = VectorType(ROWS * ROWS, I32)
_PAIRS: Final = VectorType(ROWS, I32)
_HALVES: Final = VectorType(2 * ROWS, HALF)
_FLOATS: Final = VectorType(ROWS, FLOAT)
_ALIGN: Final = 64


def product_scratch(b: Builder) -> list[Value]:
    """Memory for three tiles, shared by all products of a function."""
    return [b.alloca(_TILE_WORDS, part) for part in "cab"]


def call_product_function(
    b: Builder, attributes: Sequence[str], name: str, words: Sequence[Value], memory: Sequence[Value]
) -> Value:
    """The words of `acc + lhs @ rhs`, of 16 rows x 64 bytes each.

    Args:
        b: Where to emit.
        attributes: Attributes of the function.
        name: The instruction.
        words: The words of acc, lhs and rhs.
        memory: Memory for the three tiles.
    """
    for value, place in zip(words, memory, strict=True):
        b.store(value, place, _ALIGN)
    places = [b.retype(place, I8) for place in memory]
    type_ = FunctionType(VOID, tuple(place.type for place in places))
    b.call(Global(b.pointer(type_), _product_function(b.module, attributes, name)), type_, places)
    return b.load(_TILE_WORDS, memory[0], _ALIGN, "words")


def _product_function(module: Module, attributes: Sequence[str], name: str) -> str:
    """The function for a product, made on first use."""
    stem = f"tlx.{name}"
    made = next((f.name for f in module.functions if f.name.startswith(stem)), "")
    if made:
        return made
    made = module.global_names.fresh(stem)
    parameters = [(module.pointer_to(I8), "noalias", part) for part in "cab"]
    function = new_function(module, made, parameters, " ".join(["nounwind", "noinline", *attributes]))
    b = Builder(module, function)
    c, lhs, rhs = (argument.value for argument in function.arguments)
    with b.loop(0, ROWS, name="m") as row:
        place = b.gep(_FLOATS, c, row.index)
        start = b.load(_FLOATS, place, _ALIGN)
        pairs = b.gep(_PAIRS, lhs, row.index)
        with b.loop(0, ROWS, carry=[start], name="k") as step:
            pair = b.splat(b.load(I32, b.gep(I32, pairs, step.index), 4), ROWS)
            step.next(_pair_sum(b, pair, b.load(_PAIRS, b.gep(_PAIRS, rhs, step.index), _ALIGN), step.carried[0]))
        b.store(step.results[0], place, _ALIGN)
    b.ret()
    return made


def _pair_sum(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Each lane's sum plus both products of its pair of halves."""
    halves = [b.cast("bitcast", value, _HALVES) for value in (lhs, rhs)]
    for place in range(2):
        lanes = range(place, 2 * ROWS, 2)
        x, y = (b.cast("fpext", b.shuffle(value, None, lanes), _FLOATS) for value in halves)
        total = b.fma(x, y, total)
    return total


_WORD_BYTES: Final = 4
_INSTRUCTIONS: Final = {
    ("bfloat", "f", "f"): "tdpbf16ps",
    ("half", "f", "f"): "tdpfp16ps",
    ("i8", "s", "s"): "tdpbssd",
    ("i8", "s", "u"): "tdpbsud",
    ("i8", "u", "s"): "tdpbusd",
    ("i8", "u", "u"): "tdpbuud",
}
"""Products, by element type and signs of A and B."""


def tile_shapes(function: Function) -> frozenset[tuple[str, ...]]:
    """Rows and bytes of a function's tiles: LLVM runs out of registers where a function has tiles of many shapes."""
    makers = [i for i in function.instructions() if i.is_call and i.type == X86_AMX]
    return frozenset(tuple(str(operand) for operand in i.operands[:2]) for i in makers)


class TileEmitter:
    """Instructions on whole tiles, as `tlx.target.matrix_unit.TileOperations` describes them.

    Emulated tiles cross blocks as words.

    Attributes:
        b: The builder.
        attributes: Attributes of functions for the target.
        emulate: Whether tiles are cast to words.
        words_of_tile: The words of each emulated tile, by the tile's name.
        copy_buffer: 16 rows x 64 bytes for tiles that LLVM's scalarisation cannot load directly.
        product_buffers: Memory for the three tiles of products that it does not expand.
    """

    def __init__(self, b: Builder, attributes: Sequence[str], *, emulate: bool) -> None:
        self.b = b
        self.attributes = attributes
        self.emulate = emulate
        self.words_of_tile: dict[str, Value] = {}
        self.copy_buffer: Value | None = None
        self.product_buffers: list[Value] = []

    def zero(self) -> Value:
        """TILEZERO."""
        return self._made("tilezero", [_i16(ROWS), _i16(ROW_BYTES)])

    def product(self, dot: Dot, depth: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """TDPBF16PS, TDPFP16PS, TDPB[SU][SU]D."""
        name = _INSTRUCTIONS[dot.lhs[0], dot.lhs[1], dot.rhs[1]]
        if self.emulate and name in UNSCALARISED_PRODUCTS:
            self.product_buffers = self.product_buffers or product_scratch(self.b)
            words = [self.words_of_tile[str(tile)] for tile in (acc, lhs, rhs)]
            return self._tile(call_product_function(self.b, self.attributes, name, words, self.product_buffers))
        return self._made(name, [_i16(ROWS), _i16(ROW_BYTES), _i16(depth), acc, lhs, rhs])

    def load(self, place: TilePlace) -> Value:
        """TILELOADD."""
        return self._loaded(place, (ROWS, ROW_BYTES))

    def load_a(self, place: TilePlace, depth: int) -> Value:
        """TILELOADD."""
        return self._loaded(place, (ROWS, depth))

    def load_b(self, place: TilePlace, groups: int, *, streaming: bool) -> Value:
        """TILELOADD, or TILELOADDT1, which does not pollute L1; LLVM's scalarisation does not support it."""
        name = "tileloaddt164" if streaming and not self.emulate else "tileloadd64"
        return self._loaded(place, (groups, ROW_BYTES), name)

    def store(self, tile: Value, place: TilePlace) -> None:
        """TILESTORED."""
        args = [_i16(ROWS), _i16(ROW_BYTES), self._address(place), const_int(I64, place.stride), tile]
        self.b.call_named("llvm.x86.tilestored64.internal", VOID, args)

    def phi(self, name: str) -> Instruction:
        """A phi of a tile or its words."""
        type_ = _TILE_WORDS if self.emulate else X86_AMX
        return self.b.emit("phi", type_, [], f"phi {type_} ", name)

    def from_phi(self, value: Value) -> Value:
        """The tile of a phi's value."""
        return self._tile(value) if value.type == _TILE_WORDS else value

    def to_phi(self, tile: Value) -> Value:
        """A tile as a phi's value: its words if emulated."""
        return self.words_of_tile.get(str(tile), tile)

    def _loaded(self, place: TilePlace, shape: tuple[int, int], name: str = "tileloadd64") -> Value:
        """Load a tile of `shape`: rows and bytes of a row."""
        rows, row_bytes = shape
        address, stride = self._address(place), place.stride
        if self.emulate and stride % _WORD_BYTES:
            address, stride = self._copied(address, stride, shape), ROW_BYTES
        return self._made(name, [_i16(rows), _i16(row_bytes), address, const_int(I64, stride)])

    def _address(self, place: TilePlace) -> Value:
        return self.b.retype(self.b.gep(I8, place.pointer, place.offset), I8)

    def _made(self, name: str, args: list[Value]) -> Value:
        """Call an AMX intrinsic that returns a tile."""
        b = self.b
        tile = b.call_named(f"llvm.x86.{name}.internal", X86_AMX, args, "tile").value
        if not self.emulate:
            return tile
        words = b.value("bitcast", _TILE_WORDS, [tile], f"bitcast {tile.typed} to {_TILE_WORDS}", "words")
        return self._tile(words)

    def _tile(self, words: Value) -> Value:
        tile = self.b.value("bitcast", X86_AMX, [words], f"bitcast {words.typed} to {X86_AMX}", "tile")
        self.words_of_tile[str(tile)] = words
        return tile

    def _copied(self, address: Value, stride: int, shape: tuple[int, int]) -> Value:
        """Copy a tile of `shape` to a buffer with rows of `ROW_BYTES`.

        The instruction loads rows at any byte stride. LLVM's scalarisation of it (X86LowerAMXIntrinsics, the same in
        LLVM 14, 19 and 22) loads words at a stride of `stride / 4` words, rounded down.
        """
        b = self.b
        if self.copy_buffer is None:
            self.copy_buffer = b.alloca(ArrayType(ROWS * ROW_BYTES, I8), "tile.copy")
        words_of_row = VectorType(shape[1] // _WORD_BYTES, I32)
        for row in range(shape[0]):
            words = b.load(words_of_row, b.gep(I8, address, row * stride), 1)
            b.store(words, b.gep(I8, self.copy_buffer, row * ROW_BYTES), ROW_BYTES)
        return b.retype(self.copy_buffer, I8)


def _i16(number: int) -> ConstInt:
    return const_int(I16, number)
