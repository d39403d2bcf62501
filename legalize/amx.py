"""`amx`: Intel AMX tiles for bfloat and 8-bit integers, for half with AMX-FP16, AVX-512 for everything else.

Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18: eight tiles of 16 rows x 64 bytes;
TDPBF16PS, TDPFP16PS and TDPB[SU][SU]D multiply 16x64 bytes of A with B in VNNI order:

    A 16 x K      B K/v x 16 x v (v = 2 bfloat or half, 4 bytes)      C 16 x 16 float or i32

Sums of float that are subnormal are zeros; TDPFP16PS takes subnormals of half for what they are, TDPBF16PS those of
bfloat for zeros.

A register tile is a 2x2 grid of C; a step of K loads two tiles of A and two of B and multiplies four times. Tiles are
values (`x86_amx`) until a function is complete, then registers with numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.builder import Builder, new_function
from tlx.ir.constructors import add_constructor
from tlx.ir.metadata import is_flushed, is_nontemporal, is_passing
from tlx.ir.module import Module
from tlx.ir.rewriter import add_incoming
from tlx.ir.types import BFLOAT, FLOAT, I8, I64, PTR, ArrayType, Type, VectorType, bits_of, scalar_of
from tlx.ir.values import ConstInt, Keyword, Local, Text, Value
from tlx.legalize._edges import is_edge, store_edge
from tlx.legalize._grids import spread
from tlx.legalize._rounding import can_round, rounded_sums
from tlx.legalize._tile_registers import number_tiles
from tlx.legalize._tiles import ROW_BYTES, ROWS, Placed, Tiles
from tlx.legalize.avx512 import TARGET as AVX512
from tlx.lower.legalize.memory import load_tile, store_tile
from tlx.lower.legalize.vector import TileLegalizer
from tlx.lower.signs import MMA_SIGNS
from tlx.target import Caches, Dot, Matrix
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.ir.module import Function, Instruction
    from tlx.ir.tensors import Tensor, TensorOp
    from tlx.lower.legalize.registers import Registers
    from tlx.lower.ordinary import Operation
    from tlx.lower.stage import Context

_SIDE: Final = 16
_GRID: Final = 2
_WORD_BYTES: Final = 4
_MOST_SUMS: Final = 4
_ON_MEMORY: Final = ("load", "store", "call")
_PREFETCH: Final = "llvm.prefetch"
_MOST_USES: Final = 2  # of a loaded tile in a block: LLVM 14 to 22 crash at -O0 over tiles with more
_BESIDE: Final = (0, 2, 1)  # <K/v, N, v>: tiles side by side
_BEHIND: Final = (1, 3, 0, 2)  # <tiles, 16, 16, v>: tile behind tile
_TILES_APART: Final = 4
_PRODUCTS: Final = {
    ("bfloat", "s", "s"): "tdpbf16ps",
    ("half", "s", "s"): "tdpfp16ps",
    ("i8", "s", "s"): "tdpbssd",
    ("i8", "s", "u"): "tdpbsud",
    ("i8", "u", "s"): "tdpbusd",
    ("i8", "u", "u"): "tdpbuud",
}
_SYSCALL: Final = Text(
    PTR,
    'asm sideeffect "syscall", "={ax},{ax},{di},{si},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}"',
)


def _no_register_form(b: Builder, acc: Value, lhs: Value, rhs: Value) -> Value:
    """Tile products have no vector form; the legaliser emits them itself."""
    del b, lhs, rhs
    return acc


class _AmxLegalizer(TileLegalizer):
    """Legalises a kernel's matrix tiles to AMX, the rest to AVX-512.

    Attributes:
        amx: Emits the instructions on tiles.
        grids: The four tiles of each accumulator value, by name, row by row.
        scratch: 32 rows x 32 words for partial and converted tiles.
        waiting: Tiles that are stored when the next product starts.
        prefetches: Those of lines of results, which are spread over the next products.
    """

    def __init__(self, module: Module, function: Function, context: Context) -> None:
        super().__init__(module, function, context)
        self.grids: dict[str, list[Value]] = {}
        self.grid_phis: list[tuple[Instruction, list[Instruction]]] = []
        self.amx = Tiles(self.b, context.target, emulate=context.emulate_matrix)
        self.accumulators = self._find_accumulators()
        self.waiting: list[Placed] = []
        self.prefetches: list[Instruction] = []
        self.scratch: Value | None = None
        self.made = {i.result: i for i in function.instructions() if i.result is not None}

    def _find_accumulators(self) -> dict[str, tuple[int, int]]:
        """Grids of the flattened vectors that live in tiles, by name: sums of tile products, and phis of them."""
        found: dict[str, tuple[int, int]] = {}
        for op in self.tensors.ops:
            if op.intrinsic.name in MMA_SIGNS and self._is_tile_product(op):
                grid = _grid(op.tensors[0].type)
                found[op.instruction.result or ""] = grid
                source = op.tensors[0].source
                if isinstance(source, Local):
                    found[source.name] = grid
        phis = [i for i in self.function.instructions() if i.opcode == "phi" and isinstance(i.type, VectorType)]
        return spread(found, {phi.result or "": phi for phi in phis})

    def _is_tile_product(self, op: TensorOp) -> bool:
        acc, lhs, rhs = (t.type for t in op.tensors)
        size = bits_of(lhs.element) // 8
        rows, columns = _grid(acc)
        depth = lhs.shape[1] * size
        whole = acc.shape == (rows * ROWS, columns * _SIDE) and lhs.shape[0] == rows * ROWS
        whole = whole and _WORD_BYTES < depth <= ROW_BYTES and depth % _WORD_BYTES == 0  # a word: a vector's step
        key = (str(lhs.element), *MMA_SIGNS[op.intrinsic.name])
        same = lhs.element == rhs.element and bits_of(acc.element) == 32
        fits = rows * columns <= _MOST_SUMS
        return whole and fits and same and key in _PRODUCTS and self._packed(op.tensors[2]) is not None

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
            tile = TensorType.dense(element, (grid[0] * ROWS, grid[1] * _SIDE))
            self._store_grid(value.name, self._scratch(), grid[1] * ROW_BYTES)
            return load_tile(self.b, self.target, self._scratch(), tile, None, self.lanes(element))
        return super().flat(value, element, rows, cols, lanes)

    def _elementwise(self, instruction: Instruction, operation: Operation, rows: int, cols: int) -> Registers:
        """Sums are rounded to bfloat by an instruction."""
        source = instruction.operands[0]
        is_rounding = operation.opcode == "fptrunc" and scalar_of(instruction.type) == BFLOAT
        if is_rounding and self._is_flushed(source) and can_round(self.context.target, cols):
            return rounded_sums(self.b, self.flat(source, FLOAT, rows, cols))
        return super()._elementwise(instruction, operation, rows, cols)

    def _is_flushed(self, value: Value) -> bool:
        """Whether none of a vector's floats is subnormal: sums, what is marked as sums, and what relu makes of them."""
        made = self.tensors.maker_of(value)
        if made is not None and made.intrinsic.name in ("tovector", "relu"):
            tensor = made.tensors[0]
            return is_flushed(tensor.definition) if tensor.kind == "load" else self._is_flushed(tensor.source)
        return isinstance(value, Local) and value.name in self.grids and scalar_of(value.type) == FLOAT

    def store(self, op: TensorOp) -> None:
        """A whole accumulator goes to memory directly, behind the first tile loads of the next product.

        A tile store waits for the sums, and later tile loads wait for the store: between the first products of the
        next sums, none of them waits.
        """
        tensor = op.tensors[0]
        name = tensor.source.name if isinstance(tensor.source, Local) else ""
        is_direct = is_edge(tensor.type) and not is_nontemporal(op.instruction)
        if name not in self.grids or op.pointer is None or (tensor.type.is_padded and not is_direct):
            super().store(op)
            return
        self._unpack_phis()
        places = self._places(name, op.pointer, tensor.type.strides(op.pitches)[0] * 4)
        if tensor.type.is_padded:
            store_edge(self.b, self.target, self.amx, op, places, self._scratch())
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
        tile = TensorType.dense(value.type.element, (grid[0] * ROWS, grid[1] * _SIDE))
        registers = super().flat(value, value.type.element, *tile.shape)
        store_tile(self.b, self.target, self._scratch(), registers, tile, None)
        return self._loads(self._scratch(), grid[1] * ROW_BYTES, grid)

    def _scratch(self) -> Value:
        if self.scratch is None:
            self.scratch = self.b.alloca(ArrayType(_MOST_SUMS * ROWS * ROW_BYTES, I8), "tiles")
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

    def _places(self, name: str, pointer: Value, stride: int) -> list[Placed]:
        """The tiles of an accumulator, and where each goes."""
        columns = self.accumulators[name][1]
        places = [divmod(index, columns) for index in range(len(self.grids[name]))]
        return [
            Placed(tile, pointer, row * ROWS * stride + column * ROW_BYTES, stride)
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
        rows, columns = _grid(acc.type)
        starts = self._starts(acc.source, (rows, columns))
        product = _PRODUCTS[str(lhs.type.element), *MMA_SIGNS[op.intrinsic.name]]
        a: dict[int, Value] = {}
        b: dict[int, Value] = {}
        made: list[Value] = []
        depth = _depth(lhs)
        for index, start in enumerate(starts):
            row, column = divmod(index, columns)
            if column not in b or row == _MOST_USES:
                b[column] = self._load_b(rhs, column)
            if row not in a or column == _MOST_USES:
                a[row] = self._load_a(lhs, row)
            self._store_waiting(1)
            made.append(self.amx.product(product, depth, start(), a[row], b[column]))
            self._prefetch(-(-len(self.prefetches) // (len(starts) - index)))
        self._store_waiting(len(self.waiting))
        return made

    def _load_a(self, tensor: Tensor, row: int) -> Value:
        stride = tensor.type.strides(tensor.pitches)[0] * (bits_of(tensor.type.element) // 8)
        return self.amx.load(tensor.source, row * ROWS * stride, stride, (ROWS, _depth(tensor)))

    def _load_b(self, tensor: Tensor, column: int) -> Value:
        """A tile of B: behind the one before it (4-D), or beside it in longer rows (3-D)."""
        packed = self._packed(tensor)
        assert packed is not None
        stride = packed.type.strides(packed.pitches)[0] * (bits_of(packed.type.element) // 8)
        is_apart = packed.type.rank == _TILES_APART
        to_next, pitch = (stride, ROW_BYTES) if is_apart else (ROW_BYTES, stride)
        shape, passing = (packed.type.shape[-3], ROW_BYTES), is_passing(packed.definition)
        return self.amx.load(packed.source, column * to_next, pitch, shape, passing=passing)

    def _packed(self, tensor: Tensor) -> Tensor | None:
        """The packed load behind a token, if the token is tiles of B in VNNI order."""
        op = self.tensors.maker(tensor)
        if op is None or op.intrinsic.name != "reshape.permute" or op.dims[0] not in (_BESIDE, _BEHIND):
            return None
        source = op.tensors[0]
        return source if source.kind != "value" else None


def _grid(acc: TensorType) -> tuple[int, int]:
    """Tiles of an accumulator: (along M, along N)."""
    return acc.shape[0] // ROWS, acc.shape[1] // _SIDE


def _depth(lhs: Tensor) -> int:
    """Bytes of a row of a tile of A."""
    return lhs.type.shape[1] * bits_of(lhs.type.element) // 8


def _is_of_result(instruction: Instruction) -> bool:
    """Whether an instruction asks for a line that is to be written."""
    asks = (instruction.callee or "").startswith(_PREFETCH)
    return asks and isinstance(write := instruction.args[1], ConstInt) and write.value == 1


def _itself(tile: Value) -> Value:
    return tile


def _legalize_kernel(module: Module, function: Function, context: Context) -> None:
    _AmxLegalizer(module, function, context).run()


def _finish(module: Module, context: Context) -> None:
    """Number tiles, and have the program ask Linux for their use before `main`.

    That is `arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)`. Emulated tiles stay values.
    """
    if not context.emulate_matrix:
        number_tiles(module)
    if not context.amx_permission or not any("tileloadd" in d for d in module.declarations):
        return
    function = new_function(module, module.global_names.fresh("tlx.amx.permission"), [], "nounwind")
    b = Builder(module, function)
    b.emit("call", I64, [_SYSCALL], f"call i64 {_SYSCALL}(i64 158, i64 4131, i64 18)", "granted")
    b.ret()
    add_constructor(module, function.name)


_DOTS: Final = (
    Dot(("bfloat", "f"), ("bfloat", "f"), "float", 2, "amx-bf16", _no_register_form),
    Dot(("half", "f"), ("half", "f"), "float", 2, "amx-fp16", _no_register_form),
    *(
        Dot(("i8", lhs), ("i8", rhs), "i32", 4, "amx-int8", _no_register_form)
        for lhs in ("s", "u")
        for rhs in ("s", "u")
    ),
)

TARGET: Final = replace(
    AVX512,
    name="amx",
    title="x86-64 with AMX (bfloat, int8) and AVX-512",
    features=(*AVX512.features, "+avx512vbmi", "+amx-tile", "+amx-bf16", "+amx-int8"),
    matrix=Matrix(rows=ROWS, row_bytes=ROW_BYTES, tiles=8, grid=(_GRID, _GRID), dots=_DOTS),
    caches=Caches(l1=48 << 10, l2=2 << 20, l3=32 << 20),
    requires=(*AVX512.requires, "avx512_vbmi", "amx_tile", "amx_bf16", "amx_int8"),
    tiers=(),
    legalize_kernel=_legalize_kernel,
    finish=_finish,
)
