"""Kernels on a matrix unit: products of tiles and their sums become tile values; the rest is vector code.

A register tile is a grid of accumulators, such as 2x2; a step of K loads tiles of A and of B and multiplies each pair.
B is in VNNI order, its tiles side by side (3-D) or one after the other (4-D).

Rewrite, for tiles of 16x16 sums:
    %acc = phi <1024 x float> [ zeroinitializer, %e ], [ %n, %l ]     four phis of tiles
    %t = typeinfo(%acc, <32, 32>)
    %a = load(%pa, <32, 32>)  %b = permute(load(%pb, <16, 32, 2>))  ->  two loads of A, two of B
    %n = mma(%t, %a, %b)                                              four products of tiles

Tiles whose last columns are padding are stored through scratch memory:

    32 x 28 sums      C00 C01     C00 and C10 go to memory; of C01 and C11, 12 columns of each row, by masked stores
                      C10 C11
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.module import Module, has_no_subnormals, is_nontemporal, is_streaming
from tlx.ir.rewrite import add_incoming
from tlx.ir.types import BFLOAT, FLOAT, I8, ArrayType, IntType, Type, VectorType, bits_of, scalar_of
from tlx.ir.values import ConstInt, Keyword, Local, Value
from tlx.lower.legalize.memory import load_tile, store_tile
from tlx.lower.legalize.registers import Registers, with_lanes
from tlx.lower.legalize.vector import VectorLegalizer
from tlx.lower.operations import MMA_SIGNS
from tlx.target.matrix_unit import MatrixUnit, TileAddress

if TYPE_CHECKING:
    from tlx.ir.functions import Function
    from tlx.ir.instructions import Instruction
    from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
    from tlx.lower.context import LoweringContext
    from tlx.lower.operations import ElementwiseOp
    from tlx.target.hardware import Dot

TileGrid = tuple[int, int]
"""Tiles along M, tiles along N."""

_WORD_BYTES: Final = 4
_ACCUMULATOR_BITS: Final = 32
_TILES_SIDE_BY_SIDE: Final = (0, 2, 1)  # <K/v, N, v>
_TILES_IN_SEQUENCE: Final = (1, 3, 0, 2)  # <tiles, K/v, columns, v>
_TILE_ORDERS: Final = (_TILES_SIDE_BY_SIDE, _TILES_IN_SEQUENCE)
_TILES_IN_SEQUENCE_RANK: Final = 4
_MATRIX_RANK: Final = 2
_MEMORY_OPCODES: Final = ("load", "store", "call")
_PREFETCH: Final = "llvm.prefetch"


@dataclass(frozen=True, slots=True)
class TileProducts:
    """The products of a kernel that run on a matrix unit, and the vectors that live in its tiles.

    Attributes:
        unit: The matrix unit.
        tensors: The kernel's tensor operations.
    """

    unit: MatrixUnit
    tensors: FunctionTensors

    def grid_of(self, acc: TensorType) -> TileGrid:
        """The grid of tiles of an accumulator."""
        return acc.shape[0] // self.unit.rows, acc.shape[1] // self.unit.columns

    def grids(self, function: Function) -> dict[str, TileGrid]:
        """Grids of the flattened vectors that live in tiles, by name: sums of tile products, and phis of them."""
        grids: dict[str, TileGrid] = {}
        for op in self.tensors.ops:
            if op.intrinsic.name in MMA_SIGNS and self._is_tile_product(op):
                grid = self.grid_of(op.tensors[0].type)
                grids[op.instruction.result or ""] = grid
                source = op.tensors[0].source
                if isinstance(source, Local):
                    grids[source.name] = grid
        phis = [i for i in function.instructions() if i.opcode == "phi" and isinstance(i.type, VectorType)]
        return _propagate_grids(grids, {phi.result or "": phi for phi in phis})

    def dot_of(self, op: TensorOp) -> Dot | None:
        """The unit's product of the element types and signs of A and B."""
        element = op.tensors[1].type.element
        signs = MMA_SIGNS[op.intrinsic.name] if isinstance(element, IntType) else ("f", "f")
        types = tuple((str(element), sign) for sign in signs)
        return next((dot for dot in self.unit.dots if (dot.lhs, dot.rhs) == types), None)

    def packed_b(self, tensor: Tensor) -> Tensor | None:
        """The packed load that a token reads, if the token is tiles of B in VNNI order."""
        op = self.tensors.definition(tensor)
        if op is None or op.intrinsic.name != "reshape.permute" or op.dims[0] not in _TILE_ORDERS:
            return None
        source = op.tensors[0]
        return source if source.kind != "value" else None

    def _is_tile_product(self, op: TensorOp) -> bool:
        """Whether a product is of whole tiles, at most a grid of them, with an instruction for its types."""
        acc, lhs, rhs = (tensor.type for tensor in op.tensors)
        unit, (rows, columns) = self.unit, self.grid_of(acc)
        depth = row_bytes(op.tensors[1])
        are_whole = acc.shape == (rows * unit.rows, columns * unit.columns) and lhs.shape[0] == rows * unit.rows
        are_words = _WORD_BYTES < depth <= unit.row_bytes and depth % _WORD_BYTES == 0  # a word: a step on vectors
        are_alike = lhs.element == rhs.element and bits_of(acc.element) == _ACCUMULATOR_BITS
        fits = are_whole and are_words and are_alike and rows * columns <= unit.grid[0] * unit.grid[1]
        return fits and self.dot_of(op) is not None and self.packed_b(op.tensors[2]) is not None


def _propagate_grids(grids: dict[str, TileGrid], phis: dict[str, Instruction]) -> dict[str, TileGrid]:
    """Propagate grids from sums through phis, in both directions."""
    changed = True
    while changed:
        before = len(grids)
        for name, phi in phis.items():
            sources = [value.name for value, _ in phi.incoming if isinstance(value, Local)]
            grid = next((grids[n] for n in (name, *sources) if n in grids), None)
            if grid is not None:
                grids |= {n: grid for n in (name, *sources) if n == name or n in phis}
        changed = len(grids) > before
    return grids


def row_bytes(tensor: Tensor) -> int:
    """Bytes of a row of A."""
    return tensor.type.shape[1] * bits_of(tensor.type.element) // 8


class MatrixLegalizer(VectorLegalizer):
    """Legalises a kernel's matrix tiles to a matrix unit, the rest to vector registers.

    Attributes:
        unit: The matrix unit.
        operations: Emits its instructions.
        tile_products: The kernel's products of tiles.
        accumulators: Tiles along M and N of the flattened vectors that live in tiles, by name.
        tiles_of: The tiles of each of them, by name, row by row.
        grid_phis: Phis of accumulators, and those of their tiles.
        definitions: Instructions, by the names of their results.
        scratch: Memory for a grid of tiles, for partial and converted ones.
        pending_stores: Tiles to store when the next product starts.
        pending_prefetches: Prefetches of results, spread over the next products.
    """

    def __init__(self, module: Module, function: Function, context: LoweringContext, unit: MatrixUnit) -> None:
        super().__init__(module, function, context)
        self.unit = unit
        self.operations = unit.operations(
            self.b, self.target.function_attributes, emulate=context.options.emulate_matrix
        )
        self.tile_products = TileProducts(unit, self.tensors)
        self.accumulators = self.tile_products.grids(function)
        self.tiles_of: dict[str, list[Value]] = {}
        self.grid_phis: list[tuple[Instruction, list[Instruction]]] = []
        self.pending_stores: list[tuple[Value, TileAddress]] = []
        self.pending_prefetches: list[Instruction] = []
        self.scratch: Value | None = None
        self.definitions = {i.result: i for i in function.instructions() if i.result is not None}

    # Overridden steps ------------------------------------------------------------------------------------------

    def plain(self, instruction: Instruction) -> None:
        """Turn phis of accumulators into phis of tiles."""
        if instruction.opcode == "phi" and instruction.result in self.accumulators:
            name = instruction.result
            rows, columns = self.accumulators[name]
            phis = [self.operations.phi(name) for _ in range(rows * columns)]
            self.grid_phis.append((instruction, phis))
            self.tiles_of[name] = [phi.value for phi in phis]
            return
        super().plain(instruction)

    def legalize(self, instruction: Instruction) -> bool:
        """Emit pending stores and prefetches before any other memory access and the end of the block."""
        if _is_prefetch_for_write(instruction):
            self.pending_prefetches.append(instruction)
            return True
        is_plain = self.tensors.op_of(instruction) is None and instruction.result not in self.tensors.tokens
        if instruction.is_terminator or (is_plain and instruction.opcode in _MEMORY_OPCODES):
            self._store_pending()
            self._prefetch(len(self.pending_prefetches))
        return super().legalize(instruction)

    def operation(self, op: TensorOp) -> None:
        """Emit products of tiles on the unit."""
        if op.intrinsic.name in MMA_SIGNS and op.instruction.result in self.accumulators:
            self._unpack_phis()
            self.tiles_of[op.instruction.result] = self._product(op)
            return
        starts_sums = op.intrinsic.name == "tovector" and op.instruction.result in self.accumulators
        if op.intrinsic.name not in ("typeinfo", "reshape.permute") and not starts_sums:  # nothing is loaded yet
            self._store_pending()
        super().operation(op)

    def flat(self, value: Value, element: Type, rows: int, cols: int, lanes: int | None = None) -> Registers:
        """The registers of a vector; accumulators are read through scratch memory."""
        if isinstance(value, Local) and value.name in self.tiles_of:
            tile, scratch = self._dense(element, self.accumulators[value.name]), self._scratch()
            for accumulator, address in self._addresses(value.name, scratch, tile.shape[1] * _WORD_BYTES):
                self.operations.store(accumulator, address)
            return load_tile(self.b, self.target, scratch, tile, None, self.lanes(element))
        return super().flat(value, element, rows, cols, lanes)

    def _elementwise(self, instruction: Instruction, operation: ElementwiseOp, rows: int, cols: int) -> Registers:
        """Round sums to bfloat in pairs of registers, if there is an instruction."""
        source, lanes = instruction.operands[0], self.lanes(FLOAT)
        is_rounding = operation.opcode == "fptrunc" and scalar_of(instruction.type) == BFLOAT
        if is_rounding and self.target.can_round_pairs and cols % (2 * lanes) == 0 and self._is_flushed(source):
            return self._rounded_pairs(self.flat(source, FLOAT, rows, cols), lanes)
        return super()._elementwise(instruction, operation, rows, cols)

    def _rounded_pairs(self, sums: Registers, lanes: int) -> Registers:
        """A tile of floats without subnormals as bfloat."""
        assert self.target.bfloat_rounding is not None
        emit, sums = self.target.bfloat_rounding.emit, with_lanes(self.b, sums, lanes)
        rows = tuple(tuple(emit(self.b, row[i], row[i + 1]) for i in range(0, len(row), 2)) for row in sums.regs)
        return Registers(BFLOAT, sums.rows, sums.cols, 2 * lanes, rows)

    def _is_flushed(self, value: Value) -> bool:
        """Whether a vector has no subnormal floats: sums, loads that are marked as sums, and relu of them."""
        op = self.tensors.definition_of(value)
        if op is not None and op.intrinsic.name in ("tovector", "relu"):
            tensor = op.tensors[0]
            return has_no_subnormals(tensor.definition) if tensor.kind == "load" else self._is_flushed(tensor.source)
        return isinstance(value, Local) and value.name in self.tiles_of and scalar_of(value.type) == FLOAT

    def store(self, op: TensorOp) -> None:
        """Store a whole accumulator directly, after the first tile loads of the next product.

        A tile store waits for its sums, and later tile loads wait for the store. Between the first products of the next
        sums, neither stalls.
        """
        tensor = op.tensors[0]
        name = tensor.source.name if isinstance(tensor.source, Local) else ""
        is_direct = self._has_padded_last_columns(tensor.type) and not is_nontemporal(op.instruction)
        if name not in self.tiles_of or op.pointer is None or (tensor.type.is_padded and not is_direct):
            super().store(op)
            return
        self._unpack_phis()
        addresses = self._addresses(name, op.pointer, tensor.type.strides(op.pitches)[0] * _WORD_BYTES)
        if tensor.type.is_padded:
            self._store_padded_edge(op, addresses)
        else:
            self.pending_stores += addresses

    def _has_padded_last_columns(self, type_: TensorType) -> bool:
        """Whether only the last tile of each row has padding, and only in columns."""
        if len(type_.padding) != _MATRIX_RANK or not type_.is_row_major:
            return False
        rows, columns = type_.padding
        return rows == 0 < columns < self.unit.columns

    def _store_padded_edge(self, op: TensorOp, addresses: Sequence[tuple[Value, TileAddress]]) -> None:
        """Store an accumulator whose last tiles are partly padding; these go through scratch memory.

        Args:
            op: The store.
            addresses: The accumulator's tiles, row by row, with their addresses.
        """
        tensor, width, scratch = op.tensors[0], self.unit.columns, self._scratch()
        rows, cols = tensor.type.shape
        columns, tile_bytes = cols // width, self.unit.rows * self.unit.row_bytes
        for index, (tile, address) in enumerate(addresses):
            row, column = divmod(index, columns)
            at_edge = column == columns - 1
            to = TileAddress(scratch, row * tile_bytes, self.unit.row_bytes) if at_edge else address
            self.operations.store(tile, to)
        assert op.pointer is not None
        element, tile = tensor.type.element, TensorType.dense(tensor.type.element, (rows, width))
        registers = load_tile(self.b, self.target, scratch, tile, None, width)
        edge = self.b.gep(element, op.pointer, (columns - 1) * width)
        part = TensorType(element, (rows, width), (0, 1), (0, tensor.type.padding[1]))
        store_tile(self.b, self.target, edge, registers, part, (0, tensor.type.strides(op.pitches)[0]))

    def _finish_phis(self) -> None:
        for phi, tile_phis in self.grid_phis:
            for value, name in phi.incoming:
                name = self.ends.get(name, name)
                block = self.function.block(name)
                self.b.block, self.b.index = block, len(block.instructions) - 1
                grid = [start() for start in self._starts(value, self.accumulators[phi.result or ""])]
                for instruction, tile in zip(tile_phis, grid, strict=True):
                    add_incoming(instruction, self.operations.to_phi(tile), name)
        super()._finish_phis()

    # Tiles -----------------------------------------------------------------------------------------------------

    def _starts(self, value: Value, grid: TileGrid) -> list[Callable[[], Value]]:
        """Functions that emit the initial tiles of an accumulator: a zero or a load for each."""
        if isinstance(value, Local) and value.name in self.tiles_of:
            return [partial(_itself, tile) for tile in self.tiles_of[value.name]]
        if isinstance(value, Keyword):
            return [self.operations.zero] * (grid[0] * grid[1])
        return self._loaded_starts(value, grid)

    def _loaded_starts(self, value: Value, grid: TileGrid) -> list[Callable[[], Value]]:
        """The same for an initial value in memory, or one that goes through scratch memory."""
        definition = self.definitions.get(value.name) if isinstance(value, Local) else None
        op = self.tensors.op_of(definition) if definition is not None else None
        tensor = op.tensors[0] if op is not None and op.intrinsic.name == "tovector" else None
        if tensor is not None and tensor.kind == "load" and not tensor.type.is_padded:
            return self._loads(tensor.source, tensor.type.strides(tensor.pitches)[0] * _WORD_BYTES, grid)
        assert isinstance(value.type, VectorType)
        self._store_pending()
        tile = self._dense(value.type.element, grid)
        registers = super().flat(value, value.type.element, *tile.shape)
        store_tile(self.b, self.target, self._scratch(), registers, tile, None)
        return self._loads(self._scratch(), tile.shape[1] * _WORD_BYTES, grid)

    def _dense(self, element: Type, grid: TileGrid) -> TensorType:
        """The dense tensor type of a grid of tiles."""
        return TensorType.dense(element, (grid[0] * self.unit.rows, grid[1] * self.unit.columns))

    def _scratch(self) -> Value:
        if self.scratch is None:
            rows, columns = self.unit.grid
            size = rows * columns * self.unit.rows * self.unit.row_bytes
            self.scratch = self.b.alloca(ArrayType(size, I8), "tiles")
        return self.scratch

    def _unpack_phis(self) -> None:
        """Convert tiles from their form in phis, after the last phi."""
        for phi, _ in self.grid_phis:
            name = phi.result or ""
            self.tiles_of[name] = [self.operations.from_phi(tile) for tile in self.tiles_of[name]]

    def _loads(self, pointer: Value, stride: int, grid: TileGrid) -> list[Callable[[], Value]]:
        tiles = [(row, column) for row in range(grid[0]) for column in range(grid[1])]
        return [partial(self.operations.load, self._address(pointer, stride, *tile)) for tile in tiles]

    def _address(self, pointer: Value, stride: int, row: int, column: int) -> TileAddress:
        """Address of a tile of a grid."""
        return TileAddress(pointer, row * self.unit.rows * stride + column * self.unit.row_bytes, stride)

    def _addresses(self, name: str, pointer: Value, stride: int) -> list[tuple[Value, TileAddress]]:
        """The tiles of an accumulator, with the address of each."""
        columns = self.accumulators[name][1]
        return [
            (tile, self._address(pointer, stride, *divmod(index, columns)))
            for index, tile in enumerate(self.tiles_of[name])
        ]

    def _store_pending(self, count: int | None = None) -> None:
        """Emit the next `count` pending stores, by default all."""
        for tile, address in self.pending_stores[:count]:
            self.operations.store(tile, address)
        del self.pending_stores[:count]

    def _prefetch(self, count: int) -> None:
        """Emit the next `count` pending prefetches."""
        for instruction in self.pending_prefetches[:count]:
            self._keep(instruction)
        del self.pending_prefetches[:count]

    def _product(self, op: TensorOp) -> list[Value]:
        """Emit a product: B0, A0, C00; B1, C01; A1, C10, C11. Each tile is loaded right before its first use.

        Each pending tile is stored right before the sum that reuses its register starts. Prefetches are spread evenly
        over the products, as a burst delays tile loads: 128x128x128 bytes run at 0.91 of the speed without prefetches
        if there are 32 in one place, and at 1.05 with 8 after each product (Xeon with AMX).
        """
        acc, lhs, rhs = op.tensors
        rows, columns = self.tile_products.grid_of(acc.type)
        starts = self._starts(acc.source, (rows, columns))
        dot, depth = self.tile_products.dot_of(op), row_bytes(lhs)
        assert dot is not None
        a: dict[int, Value] = {}
        b: dict[int, Value] = {}
        sums: list[Value] = []
        for index, start in enumerate(starts):
            row, column = divmod(index, columns)
            if column not in b or row == self.unit.max_uses:
                b[column] = self._load_b(rhs, column)
            if row not in a or column == self.unit.max_uses:
                a[row] = self._load_a(lhs, row)
            self._store_pending(1)
            sums.append(self.operations.product(dot, depth, start(), a[row], b[column]))
            self._prefetch(-(-len(self.pending_prefetches) // (len(starts) - index)))
        self._store_pending()
        return sums

    def _load_a(self, tensor: Tensor, row: int) -> Value:
        """A tile of A, `row` tiles below the first one."""
        stride = tensor.type.strides(tensor.pitches)[0] * (bits_of(tensor.type.element) // 8)
        address = TileAddress(tensor.source, row * self.unit.rows * stride, stride)
        return self.operations.load_a(address, row_bytes(tensor))

    def _load_b(self, tensor: Tensor, column: int) -> Value:
        """A tile of B, `column` tiles after the first one (4-D) or to its right (3-D)."""
        packed = self.tile_products.packed_b(tensor)
        assert packed is not None
        stride = packed.type.strides(packed.pitches)[0] * (bits_of(packed.type.element) // 8)
        in_sequence = packed.type.rank == _TILES_IN_SEQUENCE_RANK
        step, pitch = (stride, self.unit.row_bytes) if in_sequence else (self.unit.row_bytes, stride)
        address = TileAddress(packed.source, column * step, pitch)
        return self.operations.load_b(address, packed.type.shape[-3], streaming=is_streaming(packed.definition))


def _is_prefetch_for_write(instruction: Instruction) -> bool:
    """Whether an instruction prefetches a line for writing."""
    is_prefetch = (instruction.callee or "").startswith(_PREFETCH)
    return is_prefetch and isinstance(write := instruction.args[1], ConstInt) and write.value == 1


def _itself(tile: Value) -> Value:
    return tile
