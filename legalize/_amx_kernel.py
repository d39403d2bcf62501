"""Kernels on AMX tiles: products of matrix tiles and their sums become tile values, the rest AVX-512."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.ir.metadata import is_flushed, is_nontemporal
from tlx.ir.module import Module
from tlx.ir.rewriter import add_incoming
from tlx.ir.types import BFLOAT, FLOAT, I8, ArrayType, Type, VectorType, scalar_of
from tlx.ir.values import ConstInt, Keyword, Local, Value
from tlx.legalize._edges import is_edge, store_edge
from tlx.legalize._grids import MOST_SUMS, PRODUCTS, SIDE, accumulators, grid_of, kind_of
from tlx.legalize._rounding import can_round, rounded_sums
from tlx.legalize._tile_operands import load_a, load_b, row_bytes
from tlx.legalize._tiles import ROW_BYTES, ROWS, Placed, Tiles
from tlx.lower.legalize.memory import load_tile, store_tile
from tlx.lower.legalize.vector import TileLegalizer
from tlx.lower.signs import MMA_SIGNS
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.ir.module import Function, Instruction
    from tlx.ir.tensors import TensorOp
    from tlx.lower.legalize.registers import Registers
    from tlx.lower.ordinary import Operation
    from tlx.lower.stage import Context

_ON_MEMORY: Final = ("load", "store", "call")
_PREFETCH: Final = "llvm.prefetch"
_MOST_USES: Final = 2  # of a loaded tile in a block: LLVM 14 to 22 crash at -O0 over tiles with more


class AmxLegalizer(TileLegalizer):
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

    def __init__(self, module: Module, function: Function, context: Context) -> None:
        super().__init__(module, function, context)
        self.grids: dict[str, list[Value]] = {}
        self.grid_phis: list[tuple[Instruction, list[Instruction]]] = []
        self.amx = Tiles(self.b, context.target, emulate=context.emulate_matrix)
        self.accumulators = accumulators(function, self.tensors)
        self.waiting: list[Placed] = []
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
            tile = TensorType.dense(element, (grid[0] * ROWS, grid[1] * SIDE))
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
        tile = TensorType.dense(value.type.element, (grid[0] * ROWS, grid[1] * SIDE))
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
        rows, columns = grid_of(acc.type)
        starts = self._starts(acc.source, (rows, columns))
        product = PRODUCTS[kind_of(op)]
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
