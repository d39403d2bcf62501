# ruff: noqa: ARG002 (all units take the same)
"""`amx`: Intel AMX tiles for bfloat and 8-bit integers, for half with AMX-FP16, AVX-512 for everything else.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18: eight tiles of 16 rows x 64 bytes;
TDPBF16PS, TDPFP16PS and TDPB[SU][SU]D multiply 16x64 bytes of A with B in VNNI order:

    A 16 x K      B K/v x 16 x v (v = 2 bfloat or half, 4 bytes)      C 16 x 16 float or i32

Sums of float that are subnormal are zeros; TDPBF16PS reads subnormal bfloats as zeros, TDPFP16PS reads subnormal halves
exactly.

A register tile is a 2x2 grid of C; a step of K loads two tiles of A and two of B and multiplies four times. Tiles are
values (`x86_amx`) until a function is complete; `tile_registers` gives each a register.

LLVM can emulate tiles (`-enable-x86-scalar-amx`) if every tile is cast to `<256 x i32>`, the only form in which it
crosses blocks. X86LowerAMXIntrinsics (LLVM 14 to 22) expands products of bfloat and of bytes to loops, but not those of
half; these are calls to a function on tiles in memory:

    tdpfp16ps     c[m][n] += sum over k of a[m][2k] * b[k][2n] + a[m][2k + 1] * b[k][2n + 1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.types import FLOAT, HALF, I8, I16, I32, I64, VOID, X86_AMX, ArrayType, FunctionType, VectorType
from tlx.ir.values import ConstInt, Global, Value, const_int
from tlx.legalize.x86 import TRIPLES
from tlx.legalize.x86.avx512 import TARGET as AVX512
from tlx.legalize.x86.conversions import saturate_in_float
from tlx.legalize.x86.features import request_tiles
from tlx.legalize.x86.tile_registers import TILES, number_tiles
from tlx.target.costs.memory import Caches
from tlx.target.instructions.compilers import CompilerVersions
from tlx.target.instructions.dots import Dot
from tlx.target.matrix_unit import Fp16SplitCosts, MatrixEmulation, MatrixUnit, MatrixUnitCosts, TileKind

if TYPE_CHECKING:  # finding this machine's target needs no code that writes IR
    from tlx.ir.builder import Builder
    from tlx.target.matrix_unit import TileAddress, TileOperand

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
    for value, buffer in zip(words, memory, strict=True):
        b.store(value, buffer, _ALIGN)
    pointers = [b.retype(buffer, I8) for buffer in memory]
    type_ = FunctionType(VOID, tuple(pointer.type for pointer in pointers))
    b.call(Global(b.pointer(type_), _product_function(b.module, attributes, name)), type_, pointers)
    return b.load(_TILE_WORDS, memory[0], _ALIGN, "words")


def _product_function(module: Module, attributes: Sequence[str], instruction: str) -> str:
    """Name of the function for a product, which is created on first use."""
    from tlx.ir.builder import Builder, new_function

    stem = f"tlx.{instruction}"
    name = next((f.name for f in module.functions if f.name.startswith(stem)), "")
    if name:
        return name
    name = module.global_names.fresh(stem)
    parameters = [(module.pointer_to(I8), "noalias", part) for part in "cab"]
    function = new_function(module, name, parameters, " ".join(["nounwind", "noinline", *attributes]))
    b = Builder(module, function)
    c, lhs, rhs = (argument.value for argument in function.arguments)
    with b.loop(0, ROWS, name="m") as row:
        address = b.gep(_FLOATS, c, row.index)
        start = b.load(_FLOATS, address, _ALIGN)
        pairs = b.gep(_PAIRS, lhs, row.index)
        with b.loop(0, ROWS, carry=[start], name="k") as step:
            pair = b.splat(b.load(I32, b.gep(I32, pairs, step.index), 4), ROWS)
            step.next(_pair_sum(b, pair, b.load(_PAIRS, b.gep(_PAIRS, rhs, step.index), _ALIGN), step.carried[0]))
        b.store(step.results[0], address, _ALIGN)
    b.ret()
    return name


def _pair_sum(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Each lane's sum plus both products of its pair of halves."""
    halves = [b.cast("bitcast", value, _HALVES) for value in (lhs, rhs)]
    for parity in range(2):
        positions = range(parity, 2 * ROWS, 2)
        x, y = (b.cast("fpext", b.shuffle(value, None, positions), _FLOATS) for value in halves)
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
    """Rows and row bytes of a function's tiles: LLVM runs out of registers if a function has tiles of many shapes."""
    calls = [i for i in function.instructions() if i.is_call and i.type == X86_AMX]
    return frozenset(tuple(str(operand) for operand in i.operands[:2]) for i in calls)


class AmxTiles:
    """Instructions on whole tiles, as `tlx.target.matrix_unit.TileOperations` describes them.

    Between blocks, emulated tiles are vectors of words.

    Attributes:
        b: The builder.
        instruction: The instruction that multiplies tiles.
        attributes: Attributes of functions for the target.
        row_count: Rows of sums, and of tiles of A.
        emulate: Whether tiles are cast to words.
        words_of_tile: The words of each emulated tile, by the tile's name.
        copy_buffer: 16 rows x 64 bytes for tiles that LLVM's scalarisation cannot load directly.
        product_buffers: Memory for the three tiles of products that it does not expand.
    """

    def __init__(self, b: Builder, dot: Dot, attributes: Sequence[str], *, rows: int, emulate: bool) -> None:
        self.b = b
        self.row_count = rows
        self.instruction = _INSTRUCTIONS[dot.lhs[0], dot.lhs[1], dot.rhs[1]]
        self.attributes = attributes
        self.emulate = emulate
        self.words_of_tile: dict[str, Value] = {}
        self.copy_buffer: Value | None = None
        self.product_buffers: list[Value] = []

    def enter(self) -> None:
        """Nothing: tiles are configured when a function is complete."""

    def leave(self) -> None:
        """Nothing: tiles are released when a function is complete."""

    def zero(self, place: int) -> Value:
        """TILEZERO."""
        return self._emit_tile("tilezero", [_i16(self.row_count), _i16(ROW_BYTES)])

    def product(self, groups: int, acc: Value, lhs: Value, rhs: Value) -> Value:
        """TDPBF16PS, TDPFP16PS, TDPB[SU][SU]D."""
        name = self.instruction
        if self.emulate and name in UNSCALARISED_PRODUCTS:
            self.product_buffers = self.product_buffers or product_scratch(self.b)
            words = [self.words_of_tile[str(tile)] for tile in (acc, lhs, rhs)]
            return self._tile(call_product_function(self.b, self.attributes, name, words, self.product_buffers))
        return self._emit_tile(name, [_i16(self.row_count), _i16(ROW_BYTES), _i16(_WORD_BYTES * groups), acc, lhs, rhs])

    def load(self, place: int, address: TileAddress) -> Value:
        """TILELOADD."""
        return self._load_tile(address, (self.row_count, ROW_BYTES))

    def rows(self, tile: Value) -> Sequence[Value]:
        """Not called: tiles are read through memory."""
        raise NotImplementedError

    def from_rows(self, place: int, rows: Sequence[Value]) -> Value:
        """Not called: tiles are read through memory."""
        raise NotImplementedError

    def load_a(self, address: TileAddress, groups: int) -> TileOperand:
        """TILELOADD."""
        return (self._load_tile(address, (self.row_count, _WORD_BYTES * groups)),)

    def load_b(self, address: TileAddress, groups: int, *, streaming: bool) -> TileOperand:
        """TILELOADD, or TILELOADDT1, which does not pollute L1; LLVM's scalarisation does not support it."""
        name = "tileloaddt164" if streaming and not self.emulate else "tileloadd64"
        return (self._load_tile(address, (groups, ROW_BYTES), name),)

    def store(self, tile: Value, address: TileAddress) -> None:
        """TILESTORED."""
        args = [_i16(self.row_count), _i16(ROW_BYTES), self._pointer(address), const_int(I64, address.stride), tile]
        self.b.call_named("llvm.x86.tilestored64.internal", VOID, args)

    def phi(self, place: int, name: str) -> Instruction:
        """A phi of a tile or its words."""
        type_ = _TILE_WORDS if self.emulate else X86_AMX
        return self.b.emit("phi", type_, [], f"phi {type_} ", name)

    def from_phi(self, place: int, value: Value) -> Value:
        """The tile of a phi's value."""
        return self._tile(value) if value.type == _TILE_WORDS else value

    def to_phi(self, tile: Value) -> Value:
        """A tile as a phi's value: its words if emulated."""
        return self.words_of_tile.get(str(tile), tile)

    def _load_tile(self, address: TileAddress, shape: tuple[int, int], name: str = "tileloadd64") -> Value:
        """Load a tile of `shape`: rows and bytes of a row."""
        rows, row_bytes = shape
        pointer, stride = self._pointer(address), address.stride
        if self.emulate and stride % _WORD_BYTES:
            pointer, stride = self._copied(pointer, stride, shape), ROW_BYTES
        return self._emit_tile(name, [_i16(rows), _i16(row_bytes), pointer, const_int(I64, stride)])

    def _pointer(self, address: TileAddress) -> Value:
        return self.b.retype(self.b.gep(I8, address.pointer, address.offset), I8)

    def _emit_tile(self, name: str, args: list[Value]) -> Value:
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

    def _copied(self, pointer: Value, stride: int, shape: tuple[int, int]) -> Value:
        """Copy a tile of `shape` to a buffer with rows of `ROW_BYTES`.

        The instruction loads rows at any byte stride. LLVM's scalarisation of it (X86LowerAMXIntrinsics, the same in
        LLVM 14, 19 and 22) loads words at a stride of `stride / 4` words, rounded down.
        """
        b = self.b
        if self.copy_buffer is None:
            self.copy_buffer = b.alloca(ArrayType(ROWS * ROW_BYTES, I8), "tile.copy")
        words_of_row = VectorType(shape[1] // _WORD_BYTES, I32)
        for row in range(shape[0]):
            words = b.load(words_of_row, b.gep(I8, pointer, row * stride), 1)
            b.store(words, b.gep(I8, self.copy_buffer, row * ROW_BYTES), ROW_BYTES)
        return b.retype(self.copy_buffer, I8)


def _i16(number: int) -> ConstInt:
    return const_int(I16, number)


def _finish(module: Module, *, emulate_matrix: bool, request_permission: bool) -> None:
    """Mend conversions, number tiles, and request their use from Linux before `main`. Emulated tiles stay values."""
    from tlx.ir.builder import Builder, new_function
    from tlx.ir.transform import add_constructor

    saturate_in_float(module, emulate_matrix=emulate_matrix, request_permission=request_permission)
    if not emulate_matrix:
        number_tiles(module)
    if not request_permission or not any("tileloadd" in d for d in module.declarations):
        return
    function = new_function(module, module.global_names.fresh("tlx.amx.permission"), [], "nounwind")
    b = Builder(module, function)
    request_tiles(b, "granted")
    b.ret()
    add_constructor(module, function.name)


_DOTS: Final = (
    Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "amx-bf16"),
    Dot(("half", "f"), ("half", "f"), "float", 2, "amx-fp16"),
    *(Dot(("i8", lhs), ("i8", rhs), "i32", 4, "amx-int8") for lhs in ("s", "u") for rhs in ("s", "u")),
)

FP16_SPLIT_COSTS: Final = Fp16SplitCosts(element_cycles=0.5, max_vector_share=0.6, max_k=1024)

AMX_COSTS: Final = MatrixUnitCosts(
    configure_cycles=225,
    load_cycles=(10.0, 26.0, 34.0, 88.0),
    l1_bypassing_load_cycles=(22.0, 28.0),
    store_cycles=(10.0, 44.0, 60.0),
    line_crossing_store_factor=1.3,
    packed_row_cycles=(2.5, 5.0, 12.0),
    transposed_row_cycles=(12.0, 20.0, 20.0),
    masked_row_cycles=2.0,
    epilogue_row_cycles=1,
    vector_speedups=(0.8, 0.6),
    min_copy_uses=4,
    max_exposed_epilogue_steps=4,
    fp16_split=FP16_SPLIT_COSTS,
    line_crossing_load_cycles=20,
    scattered_load_cycles=6,
)
"""Measured on Sapphire Rapids, one core, in cycles: LDTILECFG 249; four loads and four products 65 from the first-level
cache, 88 to 98 from the second, 164 beyond 512 KB of 4 KB pages; a tile store 21 (48 across lines); a row packed 2.5 to
3 in the first-level cache. A loop configures once. The other figures are calibrated on the benchmark."""

TARGET: Final = replace(
    AVX512,
    name="amx",
    title="x86-64 with AMX (bfloat, int8) and AVX-512",
    triples=TRIPLES,
    features=(*AVX512.features, "+avx512vbmi", "+amx-tile", "+amx-bf16", "+amx-int8"),
    compilers=CompilerVersions(features={"amx-fp16": 16}),
    dots=AVX512.with_dot_costs(["avx512fp16"]).dots,  # all processors with AMX have it
    detection=replace(AVX512.detection, on_linux_only=True),
    matrix=MatrixUnit(
        kinds=(
            TileKind(
                rows=ROWS,
                columns=ROW_BYTES // _WORD_BYTES,
                step_bytes=ROW_BYTES,
                registers=TILES,
                grid=(2, 2),
                dots=_DOTS,
                cycles=ROWS,
                operands_take_tiles=True,
                may_have_fewer_rows=True,
            ),
        ),
        operations=AmxTiles,
        costs=AMX_COSTS,
        tile_shapes=tile_shapes,
        emulation=MatrixEmulation(
            llvm_options=("-enable-x86-scalar-amx",),
            attributes=("optnone",),  # LLVM scalarises tile instructions only in such functions
            opt_level=0,  # LLVM 22 asserts over some emulated tiles that it optimises
        ),
        max_uses=2,  # LLVM 14 to 22 crash at -O0 over loaded tiles with more
    ),
    caches=Caches(l1=48 << 10, l2=2 << 20, l3=32 << 20),
    requires=(*AVX512.requires, "avx512_vbmi", "amx_tile", "amx_bf16", "amx_int8"),
    tiers=(),
    finish=_finish,
)
