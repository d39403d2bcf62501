"""Kernels on AMX tiles: products of matrix tiles and their sums become tile values, the rest AVX-512.

Grids of tile registers: which flattened vectors are held in them, and in how many along M and N.

Operands of AMX tile products: tiles of A as its rows lie, tiles of B in VNNI order, beside or behind each other.

Storing sums whose last columns are padding: whole tiles as they are, those at the edge by way of scratch memory.

32 x 28 sums      C00 C01     C00 and C10 go to memory; of C01 and C11, 12 columns of each row, by masked stores
                  C10 C11

Rounding sums of tile products to bfloat: VCVTNE2PS2BF16 rounds two registers of floats to one.

It takes subnormal floats for zeros, which is why it rounds nothing else.

Kernels on AMX tiles: products of matrix tiles and their sums become tile values, the rest AVX-512.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.metadata import has_no_subnormals, is_nontemporal, is_streaming
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import add_incoming
from tlx.ir.types import BFLOAT, FLOAT, I8, I16, ArrayType, Type, VectorType, bits_of, scalar_of
from tlx.ir.values import ConstInt, Keyword, Local, Value
from tlx.legalize.x86.amx.tiles import ROW_BYTES, ROWS, PlacedTile, TileEmitter
from tlx.lower.legalize.memory import load_tile, store_tile
from tlx.lower.legalize.registers import Registers
from tlx.lower.legalize.shuffles import with_lanes
from tlx.lower.legalize.vector import VectorLegalizer
from tlx.lower.operations import MMA_SIGNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tlx.ir.builder.instructions import Builder
    from tlx.ir.functions import Function
    from tlx.ir.instructions import Instruction
    from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
    from tlx.lower.context import LoweringContext
    from tlx.lower.operations import ElementwiseOp
    from tlx.target.target import Target

TileGrid = tuple[int, int]
"""Tiles along M, tiles along N."""

TILE_COLUMNS: Final = 16
"""Columns of a tile of sums."""
MOST_SUMS: Final = 4
"""Tiles of a grid."""
PRODUCT_INSTRUCTIONS: Final = {
    ("bfloat", "s", "s"): "tdpbf16ps",
    ("half", "s", "s"): "tdpfp16ps",
    ("i8", "s", "s"): "tdpbssd",
    ("i8", "s", "u"): "tdpbsud",
    ("i8", "u", "s"): "tdpbusd",
    ("i8", "u", "u"): "tdpbuud",
}
"""Instructions, by element type and signs of A and B."""
_WORD_BYTES: Final = 4


def accumulators(function: Function, tensors: FunctionTensors) -> dict[str, TileGrid]:
    """Grids of the flattened vectors that live in tiles, by name: sums of tile products, and phis of them."""
    found: dict[str, TileGrid] = {}
    for op in tensors.ops:
        if op.intrinsic.name in MMA_SIGNS and _is_tile_product(op, tensors):
            grid = tile_grid(op.tensors[0].type)
            found[op.instruction.result or ""] = grid
            source = op.tensors[0].source
            if isinstance(source, Local):
                found[source.name] = grid
    phis = [i for i in function.instructions() if i.opcode == "phi" and isinstance(i.type, VectorType)]
    return _propagate_grids(found, {phi.result or "": phi for phi in phis})


def tile_grid(acc: TensorType) -> TileGrid:
    """The whole tiles of an accumulator."""
    return acc.shape[0] // ROWS, acc.shape[1] // TILE_COLUMNS


def product_kind(op: TensorOp) -> tuple[str, str, str]:
    """Element type and signs of A and B of a product, as `PRODUCT_INSTRUCTIONS` lists them."""
    return str(op.tensors[1].type.element), *MMA_SIGNS[op.intrinsic.name]


def _is_tile_product(op: TensorOp, tensors: FunctionTensors) -> bool:
    """Whether a product is one of whole tiles, at most a grid of them, that an instruction multiplies."""
    acc, lhs, rhs = (tensor.type for tensor in op.tensors)
    rows, columns = tile_grid(acc)
    depth = row_bytes(op.tensors[1])
    are_whole = acc.shape == (rows * ROWS, columns * TILE_COLUMNS) and lhs.shape[0] == rows * ROWS
    are_words = _WORD_BYTES < depth <= ROW_BYTES and depth % _WORD_BYTES == 0  # a word: a vector's step
    are_alike = lhs.element == rhs.element and bits_of(acc.element) == 32
    fits = are_whole and are_words and are_alike and rows * columns <= MOST_SUMS
    return fits and product_kind(op) in PRODUCT_INSTRUCTIONS and packed_b(tensors, op.tensors[2]) is not None


def _propagate_grids(found: dict[str, TileGrid], phis: dict[str, Instruction]) -> dict[str, TileGrid]:
    """Carry grids from sums through phis, both ways."""
    changed = True
    while changed:
        before = len(found)
        for name, phi in phis.items():
            sources = [value.name for value, _ in phi.incoming if isinstance(value, Local)]
            grid = next((found[n] for n in (name, *sources) if n in found), None)
            if grid is not None:
                found |= {n: grid for n in (name, *sources) if n == name or n in phis}
        changed = len(found) > before
    return found


_BESIDE: Final = (0, 2, 1)  # <K/v, N, v>: tiles side by side
_BEHIND: Final = (1, 3, 0, 2)  # <tiles, 16, 16, v>: tile behind tile
_TILES_APART: Final = 4


def load_a(amx: TileEmitter, tensor: Tensor, row: int) -> Value:
    """A tile of A, `row` tiles below the first one."""
    stride = tensor.type.strides(tensor.pitches)[0] * (bits_of(tensor.type.element) // 8)
    return amx.load(tensor.source, row * ROWS * stride, stride, (ROWS, row_bytes(tensor)))


def load_b(amx: TileEmitter, tensors: FunctionTensors, tensor: Tensor, column: int) -> Value:
    """A tile of B, `column` tiles behind the first one (4-D), or beside it in longer rows (3-D)."""
    packed = packed_b(tensors, tensor)
    assert packed is not None
    stride = packed.type.strides(packed.pitches)[0] * (bits_of(packed.type.element) // 8)
    is_apart = packed.type.rank == _TILES_APART
    to_next, pitch = (stride, ROW_BYTES) if is_apart else (ROW_BYTES, stride)
    shape, passing = (packed.type.shape[-3], ROW_BYTES), is_streaming(packed.definition)
    return amx.load(packed.source, column * to_next, pitch, shape, passing=passing)


def packed_b(tensors: FunctionTensors, tensor: Tensor) -> Tensor | None:
    """The packed load behind a token, if the token is tiles of B in VNNI order."""
    op = tensors.maker(tensor)
    if op is None or op.intrinsic.name != "reshape.permute" or op.dims[0] not in (_BESIDE, _BEHIND):
        return None
    source = op.tensors[0]
    return source if source.kind != "value" else None


def row_bytes(tensor: Tensor) -> int:
    """Bytes of a row of tiles of A."""
    return tensor.type.shape[1] * bits_of(tensor.type.element) // 8


_SIDE: Final = 16
_MATRIX_RANK: Final = 2


def has_padded_last_columns(type_: TensorType) -> bool:
    """Whether the last tiles of a row of them, and no others, have columns that are padding; no row is."""
    if len(type_.padding) != _MATRIX_RANK or not type_.is_row_major:
        return False
    below, beside = type_.padding
    return below == 0 < beside < _SIDE


def store_padded_edge(
    b: Builder, target: Target, amx: TileEmitter, op: TensorOp, places: Sequence[PlacedTile], scratch: Value
) -> None:
    """Store an accumulator.

    Args:
        b: Where.
        target: The machine.
        amx: Emits the instructions on tiles.
        op: The store.
        places: Its tiles, row by row, and where each would go.
        scratch: Room for all tiles.
    """
    tensor = op.tensors[0]
    rows, cols = tensor.type.shape
    columns = cols // _SIDE
    for index, placed in enumerate(places):
        row, column = divmod(index, columns)
        at_edge = column == columns - 1
        amx.store(PlacedTile(placed.tile, scratch, row * ROWS * ROW_BYTES, ROW_BYTES) if at_edge else placed)
    assert op.pointer is not None
    element, tile = tensor.type.element, TensorType.dense(tensor.type.element, (rows, _SIDE))
    registers = load_tile(b, target, scratch, tile, None, _SIDE)
    edge = b.gep(element, op.pointer, (columns - 1) * _SIDE)
    part = TensorType(element, (rows, _SIDE), (0, 1), (0, tensor.type.padding[1]))
    store_tile(b, target, edge, registers, part, (0, tensor.type.strides(op.pitches)[0]))


_LANES: Final = 16
_ROUNDED: Final = VectorType(2 * _LANES, I16)


def can_round_pairs(target: Target, cols: int) -> bool:
    """Whether rows of so many floats are rounded by two registers at a time."""
    return "+avx512bf16" in target.features and cols % (2 * _LANES) == 0


def rounded_to_bfloat(b: Builder, sums: Registers) -> Registers:
    """A tile of floats, none of them subnormal, as bfloat."""
    sums = with_lanes(b, sums, _LANES)
    rows = tuple(
        tuple(
            # LLVM 14 to 16 know the result as i16; later ones upgrade it.
            b.call_named("llvm.x86.avx512bf16.cvtne2ps2bf16.512", _ROUNDED, [row[i + 1], row[i]], "rounded").value
            for i in range(0, len(row), 2)
        )
        for row in sums.regs
    )
    return Registers(BFLOAT, sums.rows, sums.cols, 2 * _LANES, rows)


_ON_MEMORY: Final = ("load", "store", "call")
_PREFETCH: Final = "llvm.prefetch"
_MOST_USES: Final = 2  # of a loaded tile in a block: LLVM 14 to 22 crash at -O0 over tiles with more


class AmxLegalizer(VectorLegalizer):
    """Legalises a kernel's matrix tiles to AMX, the rest to AVX-512.

    Attributes:
        amx: Emits the instructions on tiles.
        accumulators: Tiles along M and N of the flattened vectors that live in tiles, by name.
        grids: The tiles of each of them, by name, row by row.
        grid_phis: Phis of accumulators, and those of their tiles.
        made: Instructions, by the names of their results.
        scratch: 32 rows x 32 words for partial and converted tiles.
        waiting: Tiles that are stored when the next product starts.
        prefetches: Those of lines of results, which are spread over the next products.
    """

    def __init__(self, module: Module, function: Function, context: LoweringContext) -> None:
        super().__init__(module, function, context)
        self.grids: dict[str, list[Value]] = {}
        self.grid_phis: list[tuple[Instruction, list[Instruction]]] = []
        self.amx = TileEmitter(self.b, context.target, emulate=context.emulate_matrix)
        self.accumulators = accumulators(function, self.tensors)
        self.waiting: list[PlacedTile] = []
        self.prefetches: list[Instruction] = []
        self.scratch: Value | None = None
        self.made = {i.result: i for i in function.instructions() if i.result is not None}

    # Overridden steps ------------------------------------------------------------------------------------------

    def plain(self, instruction: Instruction) -> None:
        """Phis of accumulators become phis of tiles."""
        if instruction.opcode == "phi" and instruction.result in self.accumulators:
            name = instruction.result
            rows, columns = self.accumulators[name]
            made = [self.amx.phi(name) for _ in range(rows * columns)]
            self.grid_phis.append((instruction, made))
            self.grids[name] = [m.value for m in made]
            return
        super().plain(instruction)

    def legalise(self, instruction: Instruction) -> bool:
        """Stores, and prefetches of results, wait no longer than to other work on memory, or the end of their block."""
        if _is_of_result(instruction):
            self.prefetches.append(instruction)
            return True
        plain = self.tensors.op_of(instruction) is None and instruction.result not in self.tensors.tokens
        if instruction.is_terminator or (plain and instruction.opcode in _ON_MEMORY):
            self._store_waiting(len(self.waiting))
            self._prefetch(len(self.prefetches))
        return super().legalise(instruction)

    def operation(self, op: TensorOp) -> None:
        """Products of tiles become tile products."""
        if op.intrinsic.name in MMA_SIGNS and op.instruction.result in self.accumulators:
            self._unpack_phis()
            self.grids[op.instruction.result] = self._product(op)
            return
        if op.intrinsic.name not in ("typeinfo", "reshape.permute") and not self._only_starts(op):
            self._store_waiting(len(self.waiting))
        super().operation(op)

    def _only_starts(self, op: TensorOp) -> bool:
        """Whether a tile becomes a vector for sums to start with: nothing is read yet."""
        return op.intrinsic.name == "tovector" and op.instruction.result in self.accumulators

    def flat(self, value: Value, element: Type, rows: int, cols: int, lanes: int | None = None) -> Registers:
        """Accumulators are read through scratch memory."""
        if isinstance(value, Local) and value.name in self.grids:
            grid = self.accumulators[value.name]
            tile = TensorType.dense(element, (grid[0] * ROWS, grid[1] * TILE_COLUMNS))
            self._store_grid(value.name, self._scratch(), grid[1] * ROW_BYTES)
            return load_tile(self.b, self.target, self._scratch(), tile, None, self.lanes(element))
        return super().flat(value, element, rows, cols, lanes)

    def _elementwise(self, instruction: Instruction, operation: ElementwiseOp, rows: int, cols: int) -> Registers:
        """Sums are rounded to bfloat by an instruction."""
        source = instruction.operands[0]
        is_rounding = operation.opcode == "fptrunc" and scalar_of(instruction.type) == BFLOAT
        if is_rounding and self._is_flushed(source) and can_round_pairs(self.context.target, cols):
            return rounded_to_bfloat(self.b, self.flat(source, FLOAT, rows, cols))
        return super()._elementwise(instruction, operation, rows, cols)

    def _is_flushed(self, value: Value) -> bool:
        """Whether none of a vector's floats is subnormal: sums, what is marked as sums, and what relu makes of them."""
        made = self.tensors.maker_of(value)
        if made is not None and made.intrinsic.name in ("tovector", "relu"):
            tensor = made.tensors[0]
            return has_no_subnormals(tensor.definition) if tensor.kind == "load" else self._is_flushed(tensor.source)
        return isinstance(value, Local) and value.name in self.grids and scalar_of(value.type) == FLOAT

    def store(self, op: TensorOp) -> None:
        """A whole accumulator goes to memory directly, behind the first tile loads of the next product.

        A tile store waits for the sums, and later tile loads wait for the store: between the first products of the
        next sums, none of them waits.
        """
        tensor = op.tensors[0]
        name = tensor.source.name if isinstance(tensor.source, Local) else ""
        is_direct = has_padded_last_columns(tensor.type) and not is_nontemporal(op.instruction)
        if name not in self.grids or op.pointer is None or (tensor.type.is_padded and not is_direct):
            super().store(op)
            return
        self._unpack_phis()
        places = self._places(name, op.pointer, tensor.type.strides(op.pitches)[0] * 4)
        if tensor.type.is_padded:
            store_padded_edge(self.b, self.target, self.amx, op, places, self._scratch())
        else:
            self.waiting += places

    def _finish_phis(self) -> None:
        for phi, made in self.grid_phis:
            for value, name in phi.incoming:
                name = self.ends.get(name, name)
                block = self.function.block(name)
                self.b.block, self.b.index = block, len(block.instructions) - 1
                grid = [start() for start in self._starts(value, self.accumulators[phi.result or ""])]
                for instruction, tile in zip(made, grid, strict=True):
                    add_incoming(instruction, self.amx.across_blocks(tile), name)
        super()._finish_phis()

    # Tiles -----------------------------------------------------------------------------------------------------

    def _starts(self, value: Value, grid: tuple[int, int]) -> list[Callable[[], Value]]:
        """What gives the tiles of an accumulator value: each its own `tilezero` or load where it starts."""
        if isinstance(value, Local) and value.name in self.grids:
            return [partial(_itself, tile) for tile in self.grids[value.name]]
        if isinstance(value, Keyword):
            return [self.amx.zero] * (grid[0] * grid[1])
        return self._loaded_starts(value, grid)

    def _loaded_starts(self, value: Value, grid: tuple[int, int]) -> list[Callable[[], Value]]:
        """Tiles of a start value that lies in memory, or passes through scratch memory."""
        made = self.made.get(value.name) if isinstance(value, Local) else None
        maker = self.tensors.op_of(made) if made is not None else None
        tensor = maker.tensors[0] if maker is not None and maker.intrinsic.name == "tovector" else None
        if tensor is not None and tensor.kind == "load" and not tensor.type.is_padded:
            return self._loads(tensor.source, tensor.type.strides(tensor.pitches)[0] * 4, grid)
        assert isinstance(value.type, VectorType)
        self._store_waiting(len(self.waiting))
        tile = TensorType.dense(value.type.element, (grid[0] * ROWS, grid[1] * TILE_COLUMNS))
        registers = super().flat(value, value.type.element, *tile.shape)
        store_tile(self.b, self.target, self._scratch(), registers, tile, None)
        return self._loads(self._scratch(), grid[1] * ROW_BYTES, grid)

    def _scratch(self) -> Value:
        if self.scratch is None:
            self.scratch = self.b.alloca(ArrayType(MOST_SUMS * ROWS * ROW_BYTES, I8), "tiles")
        return self.scratch

    def _unpack_phis(self) -> None:
        """In the emulated form, phis are words: cast them to tiles behind the last phi."""
        for phi, _ in self.grid_phis:
            name = phi.result or ""
            self.grids[name] = [self.amx.of_phi(tile) for tile in self.grids[name]]

    def _loads(self, pointer: Value, stride: int, grid: tuple[int, int]) -> list[Callable[[], Value]]:
        places = [(r, c) for r in range(grid[0]) for c in range(grid[1])]
        return [partial(self.amx.load, pointer, r * ROWS * stride + c * ROW_BYTES, stride) for r, c in places]

    def _store_grid(self, name: str, pointer: Value, stride: int) -> None:
        for placed in self._places(name, pointer, stride):
            self.amx.store(placed)

    def _places(self, name: str, pointer: Value, stride: int) -> list[PlacedTile]:
        """The tiles of an accumulator, and where each goes."""
        columns = self.accumulators[name][1]
        places = [divmod(index, columns) for index in range(len(self.grids[name]))]
        return [
            PlacedTile(tile, pointer, row * ROWS * stride + column * ROW_BYTES, stride)
            for tile, (row, column) in zip(self.grids[name], places, strict=True)
        ]

    def _store_waiting(self, count: int) -> None:
        """The next `count` tiles that wait."""
        for placed in self.waiting[:count]:
            self.amx.store(placed)
        del self.waiting[:count]

    def _prefetch(self, count: int) -> None:
        """The next `count` prefetches that wait."""
        for instruction in self.prefetches[:count]:
            self._keep(instruction)
        del self.prefetches[:count]

    def _product(self, op: TensorOp) -> list[Value]:
        """B0, A0, C00; B1, C01; A1, C10, C11: each tile is loaded right before its first use.

        Tiles that wait to be stored are stored one by one, each right before the sum that takes its register starts.
        Prefetches follow the products in equal parts: a burst keeps tile loads waiting (128x128x128 bytes, 32 in
        one place 0.91 times as fast as none, 8 behind each product 1.05; Xeon with AMX).
        """
        acc, lhs, rhs = op.tensors
        rows, columns = tile_grid(acc.type)
        starts = self._starts(acc.source, (rows, columns))
        product = PRODUCT_INSTRUCTIONS[product_kind(op)]
        a: dict[int, Value] = {}
        b: dict[int, Value] = {}
        made: list[Value] = []
        depth = row_bytes(lhs)
        for index, start in enumerate(starts):
            row, column = divmod(index, columns)
            if column not in b or row == _MOST_USES:
                b[column] = load_b(self.amx, self.tensors, rhs, column)
            if row not in a or column == _MOST_USES:
                a[row] = load_a(self.amx, lhs, row)
            self._store_waiting(1)
            made.append(self.amx.product(product, depth, start(), a[row], b[column]))
            self._prefetch(-(-len(self.prefetches) // (len(starts) - index)))
        self._store_waiting(len(self.waiting))
        return made


def _is_of_result(instruction: Instruction) -> bool:
    """Whether an instruction asks for a line that is to be written."""
    asks = (instruction.callee or "").startswith(_PREFETCH)
    return asks and isinstance(write := instruction.args[1], ConstInt) and write.value == 1


def _itself(tile: Value) -> Value:
    return tile
