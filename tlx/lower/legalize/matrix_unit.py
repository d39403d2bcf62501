"""Kernels on a matrix unit: products of tiles and their sums become tile values; the rest is vector code.

A register tile is a grid of accumulators, such as 2x2; a step of K loads tiles of A and of B and multiplies each pair.
B is in VNNI order, its tiles side by side (3-D) or one after the other (4-D). A is in memory order or, where the unit
wants groups along K, in tiles of that order, one after the other (4-D).

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

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.module import Module, is_nontemporal, is_streaming
from tlx.ir.rewrite import add_incoming
from tlx.ir.types import FLOAT, I8, ArrayType, IntType, Type, VectorType, bytes_of, scalar_of
from tlx.ir.values import Keyword, Local, Value
from tlx.lower.legalize.memory import load_tile, store_tile
from tlx.lower.legalize.registers import Registers, with_lanes
from tlx.lower.legalize.scheduling.tile_products import spread_evenly
from tlx.lower.legalize.vector import VectorLegalizer
from tlx.lower.operations import MMA_SIGNS
from tlx.target.matrix_unit import MatrixUnit, TileAddress, TileKind, TileOperand, TileOperations

if TYPE_CHECKING:
    from tlx.ir.functions import Function
    from tlx.ir.instructions import Block, Instruction
    from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
    from tlx.lower.context import LoweringContext
    from tlx.target.instructions.dots import Dot


@dataclass(frozen=True, slots=True)
class TileGrid:
    """A grid of accumulators.

    Attributes:
        rows, columns: Tiles along M, tiles along N.
        tile_rows: Rows of a tile.
        dot: The product whose sums they hold.
        kind: The tiles.
        sum_bytes: Bytes of a sum.
        group_bytes: Bytes of a group along K.
    """

    rows: int
    columns: int
    tile_rows: int
    dot: Dot
    kind: TileKind
    sum_bytes: int
    group_bytes: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of sums."""
        return self.rows * self.tile_rows, self.columns * self.kind.columns

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of an accumulator."""
        return self.kind.columns * self.sum_bytes


_TILES_SIDE_BY_SIDE: Final = (0, 2, 1)  # <K/v, N, v>
_TILES_IN_SEQUENCE: Final = (1, 3, 0, 2)  # <tiles, K/v, columns, v>
_TILE_ORDERS: Final = (_TILES_SIDE_BY_SIDE, _TILES_IN_SEQUENCE)
_A_IN_GROUPS: Final = (0, 2, 1, 3)  # <tiles, K/v, rows, v>
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

    def grids(self, function: Function) -> dict[str, TileGrid]:
        """Grids of the flattened vectors that live in tiles, by name: sums of tile products, and phis of them."""
        grids: dict[str, TileGrid] = {}
        for op in self.tensors.ops:
            grid = self._grid(op) if op.intrinsic.name in MMA_SIGNS else None
            if grid is not None:
                grids[op.instruction.result or ""] = grid
                source = op.tensors[0].source
                if isinstance(source, Local):
                    grids[source.name] = grid
        phis = [i for i in function.instructions() if i.opcode == "phi" and isinstance(i.type, VectorType)]
        return _propagate_grids(grids, {phi.result or "": phi for phi in phis})

    def packed_a(self, tensor: Tensor) -> Tensor | None:
        """The packed load that a token reads, if the token is tiles of A in groups along K."""
        return self._permuted_load(tensor, (_A_IN_GROUPS,))

    def packed_b(self, tensor: Tensor) -> Tensor | None:
        """The packed load that a token reads, if the token is tiles of B in VNNI order."""
        return self._permuted_load(tensor, _TILE_ORDERS)

    def _permuted_load(self, tensor: Tensor, orders: Collection[tuple[int, ...]]) -> Tensor | None:
        op = self.tensors.definition(tensor)
        if op is None or op.intrinsic.name != "reshape.permute" or op.dims[0] not in orders:
            return None
        source = op.tensors[0]
        return source if source.kind != "value" else None

    def _dot_of(self, op: TensorOp) -> Dot | None:
        """The unit's product of the element types and signs of A and B, and the type of sums."""
        acc, element = (tensor.type.element for tensor in op.tensors[:2])
        signs = MMA_SIGNS[op.intrinsic.name] if isinstance(element, IntType) else ("f", "f")
        types = (*((str(element), sign) for sign in signs), str(acc))
        return next((dot for dot in self.unit.dots if (dot.lhs, dot.rhs, dot.accumulator) == types), None)

    def _grid(self, op: TensorOp) -> TileGrid | None:
        """The grid of a product of whole tiles with an instruction for its types; None for other products."""
        acc, lhs = op.tensors[0].type, op.tensors[1].type
        dot, right = self._dot_of(op), self.packed_b(op.tensors[2])
        if dot is None or right is None or lhs.element != op.tensors[2].type.element:
            return None
        kind = self.unit.kind_of(dot)
        size, rows = bytes_of(lhs.element), kind.rows_for(acc.shape[0])
        tiles = acc.shape[0] // rows, acc.shape[1] // kind.columns
        grid = TileGrid(*tiles, rows, dot, kind, bytes_of(acc.element), dot.width * size)
        depth = lhs.shape[1] * size
        # One group of a B whose tiles are not in sequence is a step of dot products on vectors.
        least = grid.group_bytes + (right.type.rank != _TILES_IN_SEQUENCE_RANK)
        are_whole = acc.shape == grid.shape and lhs.shape[0] == acc.shape[0]
        are_groups = least <= depth <= kind.step_bytes * kind.unroll and depth % grid.group_bytes == 0
        is_left = self.unit.a_layout == "rows" or self.packed_a(op.tensors[1]) is not None
        fits = are_whole and are_groups and is_left and kind.fits(grid.rows, grid.columns)
        return grid if fits else None


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


class MatrixLegalizer(VectorLegalizer):
    """Legalises a kernel's matrix tiles to a matrix unit, the rest to vector registers.

    Attributes:
        unit: The matrix unit.
        tile_products: The kernel's products of tiles.
        accumulators: The grids of the flattened vectors that live in tiles, by name.
        tiles_of: The tiles of each of them, by name, row by row.
        grid_phis: Phis of accumulators, and those of their tiles.
        definitions: Instructions, by the names of their results.
        scratch: Memory for a grid of tiles, for partial and converted ones.
        pending_stores: Functions that each store a tile, to be called when the next product starts.
        pending_prefetches: Prefetches, to be spread over the next product.
        moving: The instructions of products that may move after later ones, by the name of their block.
    """

    def __init__(self, module: Module, function: Function, context: LoweringContext, unit: MatrixUnit) -> None:
        super().__init__(module, function, context)
        self.unit = unit
        self.emulates = context.options.emulate_matrix
        self.tile_products = TileProducts(unit, self.tensors)
        self.accumulators = self.tile_products.grids(function)
        self.tiles_of: dict[str, list[Value]] = {}
        self.grid_phis: list[tuple[Instruction, list[Instruction]]] = []
        self.pending_stores: list[Callable[[], None]] = []
        self.pending_prefetches: list[Instruction] = []
        self.moving: dict[str, list[Instruction]] = {}
        self.scratch: Value | None = None
        self.definitions = {i.result: i for i in function.instructions() if i.result is not None}
        self._operations: dict[tuple[Dot, int], TileOperations] = {}

    @property
    def uses_tiles(self) -> bool:
        """Whether the kernel has products of tiles."""
        return bool(self.accumulators)

    def operations(self, grid: TileGrid) -> TileOperations:
        """Emits the unit's instructions for the tiles of a grid."""
        key = grid.dot, grid.tile_rows
        if key not in self._operations:
            attributes = self.target.function_attributes
            make, emulate = self.unit.operations, self.emulates
            self._operations[key] = make(self.b, grid.dot, attributes, rows=grid.tile_rows, emulate=emulate)
        return self._operations[key]

    def run(self) -> None:
        """Legalise the function in place."""
        super().run()
        for block in self.function.blocks:
            if block.name in self.moving and self.target.instructions.opaque_constraint:
                spread_evenly(self.b, block, self.moving[block.name], self.target)
        operations, self._operations = [*self._operations.values()], {}
        for each in operations:
            self.b.block, self.b.index = self.function.entry, _first_place(self.function.entry)
            each.enter()
        for block in self.function.blocks:
            for each in operations if block.terminator.opcode == "ret" else ():
                self.b.block, self.b.index = block, len(block.instructions) - 1
                each.leave()

    # Overridden steps ------------------------------------------------------------------------------------------

    def plain(self, instruction: Instruction) -> None:
        """Turn phis of accumulators into phis of tiles."""
        if instruction.opcode == "phi" and instruction.result in self.accumulators:
            name = instruction.result
            grid = self.accumulators[name]
            operations = self.operations(grid)
            phis = [operations.phi(place, name) for place in range(grid.rows * grid.columns)]
            self.grid_phis.append((instruction, phis))
            self.tiles_of[name] = [phi.value for phi in phis]
            return
        super().plain(instruction)

    def legalize(self, instruction: Instruction) -> bool:
        """Emit pending stores and prefetches before any other memory access and the end of the block."""
        if self.uses_tiles and (instruction.callee or "").startswith(_PREFETCH):
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
        """The registers of a vector; accumulators are read through scratch memory, or row by row."""
        if isinstance(value, Local) and value.name in self.tiles_of:
            grid = self.accumulators[value.name]
            if self.unit.accumulators == "registers":
                return self._rows_of(value.name, element, grid)
            tile, scratch = TensorType.dense(element, grid.shape), self._scratch()
            for store in self._stores(value.name, scratch, tile.shape[1] * grid.sum_bytes):
                store()
            return load_tile(self.b, self.target, scratch, tile, None, self.lanes(element))
        return super().flat(value, element, rows, cols, lanes)

    def _rows_of(self, name: str, element: Type, grid: TileGrid) -> Registers:
        """The rows of a grid's accumulators in vector registers."""
        tiles = [self.operations(grid).rows(tile) for tile in self.tiles_of[name]]
        across = range(grid.columns)
        rows = tuple(
            tuple(tiles[row * grid.columns + column][line] for column in across)
            for row in range(grid.rows)
            for line in range(grid.tile_rows)
        )
        return with_lanes(self.b, Registers(element, *grid.shape, grid.kind.columns, rows), self.lanes(element))

    def has_no_subnormals(self, value: Value) -> bool:
        """Whether a vector has no subnormal floats: also sums of the unit."""
        is_sum = isinstance(value, Local) and value.name in self.tiles_of and scalar_of(value.type) == FLOAT
        return is_sum or super().has_no_subnormals(value)

    def store(self, op: TensorOp) -> None:
        """Store a whole accumulator directly, after the first tile loads of the next product.

        A tile store waits for its sums, and later tile loads wait for the store. Between the first products of the next
        sums, neither stalls.
        """
        tensor = op.tensors[0]
        name = tensor.source.name if isinstance(tensor.source, Local) else ""
        if name not in self.tiles_of or op.pointer is None or not self._is_direct(op, self.accumulators[name]):
            super().store(op)
            return
        self._unpack_phis()
        if tensor.type.is_padded:
            self._store_padded_edge(op, name)
        else:
            stride = tensor.type.strides(op.pitches)[0] * self.accumulators[name].sum_bytes
            self.pending_stores += self._stores(name, op.pointer, stride)

    def _is_direct(self, op: TensorOp, grid: TileGrid) -> bool:
        """Whether tiles are stored as they are, but for those of the last columns."""
        type_ = op.tensors[0].type
        if not type_.is_padded:
            return True
        reads_memory = self.unit.accumulators == "memory"
        return reads_memory and self._has_padded_last_columns(type_, grid) and not is_nontemporal(op.instruction)

    def _has_padded_last_columns(self, type_: TensorType, grid: TileGrid) -> bool:
        """Whether only the last tile of each row has padding, and only in columns."""
        if len(type_.padding) != _MATRIX_RANK or not type_.is_row_major:
            return False
        rows, columns = type_.padding
        return rows == 0 < columns < grid.kind.columns

    def _store_padded_edge(self, op: TensorOp, name: str) -> None:
        """Store an accumulator whose last tiles are partly padding; these go through scratch memory."""
        tensor, grid, scratch = op.tensors[0], self.accumulators[name], self._scratch()
        assert op.pointer is not None
        element, (rows, cols), width = tensor.type.element, tensor.type.shape, grid.kind.columns
        stride = tensor.type.strides(op.pitches)[0]
        addresses = self._addresses(grid, op.pointer, stride * grid.sum_bytes)
        for index, (tile, address) in enumerate(zip(self.tiles_of[name], addresses, strict=True)):
            row, column = divmod(index, grid.columns)
            at_edge = column == grid.columns - 1
            to = TileAddress(scratch, row * grid.tile_rows * grid.row_bytes, grid.row_bytes) if at_edge else address
            self.operations(grid).store(tile, to)
        registers = load_tile(self.b, self.target, scratch, TensorType.dense(element, (rows, width)), None, width)
        edge = self.b.gep(element, op.pointer, cols - width)
        part = TensorType(element, (rows, width), (0, 1), (0, tensor.type.padding[1]))
        store_tile(self.b, self.target, edge, registers, part, (0, stride))

    def _finish_phis(self) -> None:
        for phi, tile_phis in self.grid_phis:
            for value, name in phi.incoming:
                name = self.ends.get(name, name)
                block = self.function.block(name)
                self.b.block, self.b.index = block, len(block.instructions) - 1
                grid = self.accumulators[phi.result or ""]
                tiles = [start() for start in self._starts(value, grid)]
                for instruction, tile in zip(tile_phis, tiles, strict=True):
                    add_incoming(instruction, self.operations(grid).to_phi(tile), name)
        super()._finish_phis()

    # Tiles -----------------------------------------------------------------------------------------------------

    def _starts(self, value: Value, grid: TileGrid) -> list[Callable[[], Value]]:
        """Functions that emit the initial tiles of an accumulator: a zero or a load for each."""
        if isinstance(value, Local) and value.name in self.tiles_of:
            return [partial(_itself, tile) for tile in self.tiles_of[value.name]]
        if isinstance(value, Keyword):
            operations = self.operations(grid)
            return [partial(operations.zero, place) for place in range(grid.rows * grid.columns)]
        return self._loaded_starts(value, grid)

    def _loaded_starts(self, value: Value, grid: TileGrid) -> list[Callable[[], Value]]:
        """The same for an initial value in memory, or one that goes through scratch memory."""
        definition = self.definitions.get(value.name) if isinstance(value, Local) else None
        op = self.tensors.op_of(definition) if definition is not None else None
        tensor = op.tensors[0] if op is not None and op.intrinsic.name == "tovector" else None
        if tensor is not None and tensor.kind == "load" and not tensor.type.is_padded:
            return self._loads(tensor.source, tensor.type.strides(tensor.pitches)[0] * grid.sum_bytes, grid)
        assert isinstance(value.type, VectorType)
        self._store_pending()
        element = value.type.element
        registers = super().flat(value, element, *grid.shape)
        if self.unit.accumulators == "registers":
            return self._starts_from(registers, grid)
        tile = TensorType.dense(element, grid.shape)
        store_tile(self.b, self.target, self._scratch(), registers, tile, None)
        return self._loads(self._scratch(), grid.shape[1] * grid.sum_bytes, grid)

    def _starts_from(self, registers: Registers, grid: TileGrid) -> list[Callable[[], Value]]:
        """The same for initial values in vector registers."""
        regs = with_lanes(self.b, registers, grid.kind.columns).regs
        starts: list[Callable[[], Value]] = []
        for place in range(grid.rows * grid.columns):
            row, column = divmod(place, grid.columns)
            rows = [regs[row * grid.tile_rows + line][column] for line in range(grid.tile_rows)]
            starts.append(partial(self.operations(grid).from_rows, place, rows))
        return starts

    def _scratch(self) -> Value:
        if self.scratch is None:
            grids = self.accumulators.values()
            size = max(g.kind.grid[0] * g.kind.grid[1] * g.kind.rows * g.row_bytes for g in grids)
            self.scratch = self.b.alloca(ArrayType(size, I8), "tiles")
        return self.scratch

    def _unpack_phis(self) -> None:
        """Convert tiles from their form in phis, after the last phi."""
        for phi, _ in self.grid_phis:
            name = phi.result or ""
            operations = self.operations(self.accumulators[name])
            self.tiles_of[name] = [operations.from_phi(place, tile) for place, tile in enumerate(self.tiles_of[name])]

    def _loads(self, pointer: Value, stride: int, grid: TileGrid) -> list[Callable[[], Value]]:
        load, addresses = self.operations(grid).load, self._addresses(grid, pointer, stride)
        return [partial(load, place, address) for place, address in enumerate(addresses)]

    def _addresses(self, grid: TileGrid, pointer: Value, stride: int) -> list[TileAddress]:
        """The addresses of the tiles of a grid, row by row."""
        places = (divmod(index, grid.columns) for index in range(grid.rows * grid.columns))
        offsets = [row * grid.tile_rows * stride + column * grid.row_bytes for row, column in places]
        return [TileAddress(pointer, offset, stride) for offset in offsets]

    def _stores(self, name: str, pointer: Value, stride: int) -> list[Callable[[], None]]:
        """Functions that store the tiles of an accumulator, one each."""
        grid = self.accumulators[name]
        store, addresses = self.operations(grid).store, self._addresses(grid, pointer, stride)
        return [partial(store, tile, at) for tile, at in zip(self.tiles_of[name], addresses, strict=True)]

    def _store_pending(self, count: int | None = None) -> None:
        """Emit the next `count` pending stores, by default all."""
        for store in self.pending_stores[:count]:
            store()
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
        if there are 32 in one place, and at 1.05 with 8 after each product (Xeon with AMX). For bfloats, the time with
        them spread, divided by that with all of them after the last product: 8000 products of 32x32x32 0.94, 2000 of
        64x64x64 0.95, 1024 cubed 0.98, 2048 cubed 0.96, 512x196x4608 0.94 (Xeon 6/167/1, alternated calls, 2026-11-30).
        """
        acc, lhs, rhs = op.tensors
        grid = self.accumulators[op.instruction.result or ""]
        starts = self._starts(acc.source, grid)
        operations, columns = self.operations(grid), grid.columns
        groups = lhs.type.shape[1] // grid.dot.width
        if grid.kind.loads_ahead:
            return self._product_by_groups(starts, (lhs, rhs), grid, groups)
        a: dict[int, TileOperand] = {}
        b: dict[int, TileOperand] = {}
        sums: list[Value] = []
        block, first = self.b.block, self.b.index
        moves = self.unit.accumulators == "memory" and not self.emulates and not self.pending_stores
        for index, start in enumerate(starts):
            row, column = divmod(index, columns)
            if column not in b or (row and row % self.unit.max_uses == 0):
                b[column] = self._load_b(rhs, column, grid, groups)
            if row not in a or (column and column % self.unit.max_uses == 0):
                a[row] = self._load_a(lhs, row, grid, groups)
            self._store_pending(1)
            sums.append(operations.product(groups, start(), a[row][0], b[column][0]))
            self._prefetch(-(-len(self.pending_prefetches) // (len(starts) - index)))
        for register in range(1, len(a[0])):  # the further registers of operands, one of all sums at a time
            for index, total in enumerate(sums):
                row, column = divmod(index, columns)
                sums[index] = operations.product(groups, total, a[row][register], b[column][register])
        self._store_pending()
        if moves:
            self.moving.setdefault(block.name, []).extend(block.instructions[first : self.b.index])
        return sums

    def _product_by_groups(
        self, starts: list[Callable[[], Value]], operands: tuple[Tensor, Tensor], grid: TileGrid, groups: int
    ) -> list[Value]:
        """Emit a product, group by group; a register is loaded some products ahead of its first use.

        LLVM keeps the order of loads and products where it knows nothing of the products' side effects.
        """
        operations, count, ahead = self.operations(grid), len(starts), grid.kind.loads_ahead
        lhs, rhs = operands
        a: dict[tuple[int, int], Value] = {}
        b: dict[tuple[int, int], Value] = {}
        sums: list[Value] = []
        for step in range(count * groups):
            for coming in range(step + ahead if step else 0, min(step + ahead + 1, count * groups)):
                group, place = divmod(coming, count)
                row, column = divmod(place, grid.columns)
                if (column, group) not in b:
                    (b[column, group],) = operations.load_b(
                        _group(self._address_of_b(rhs, column, grid), group), 1, streaming=self._streams(rhs)
                    )
                if (row, group) not in a:
                    (a[row, group],) = operations.load_a(_group(self._address_of_a(lhs, row, grid), group), 1)
            group, place = divmod(step, count)
            row, column = divmod(place, grid.columns)
            if group == 0:
                self._store_pending(1)
                sums.append(starts[place]())
            sums[place] = operations.product(groups, sums[place], a[row, group], b[column, group])
            self._prefetch(-(-len(self.pending_prefetches) // max(1, count - step)))
        self._store_pending()
        return sums

    def _load_a(self, tensor: Tensor, row: int, grid: TileGrid, groups: int) -> TileOperand:
        """A tile of A, `row` tiles below the first one, by rows or in groups along K."""
        return self.operations(grid).load_a(self._address_of_a(tensor, row, grid), groups)

    def _address_of_a(self, tensor: Tensor, row: int, grid: TileGrid) -> TileAddress:
        packed, size = self.tile_products.packed_a(tensor), bytes_of(tensor.type.element)
        if self.unit.a_layout == "groups":
            assert packed is not None
            strides = packed.type.strides(packed.pitches)
            return TileAddress(packed.source, row * strides[0] * size, strides[1] * size)
        stride = tensor.type.strides(tensor.pitches)[0] * size
        return TileAddress(tensor.source, row * grid.tile_rows * stride, stride)

    def _load_b(self, tensor: Tensor, column: int, grid: TileGrid, groups: int) -> TileOperand:
        """A tile of B, `column` tiles after the first one (4-D) or to its right (3-D)."""
        address, streaming = self._address_of_b(tensor, column, grid), self._streams(tensor)
        return self.operations(grid).load_b(address, groups, streaming=streaming)

    def _streams(self, tensor: Tensor) -> bool:
        """Whether tiles of B bypass the first-level cache."""
        packed = self.tile_products.packed_b(tensor)
        return packed is not None and is_streaming(packed.definition)

    def _address_of_b(self, tensor: Tensor, column: int, grid: TileGrid) -> TileAddress:
        packed = self.tile_products.packed_b(tensor)
        assert packed is not None
        stride = packed.type.strides(packed.pitches)[0] * bytes_of(packed.type.element)
        in_sequence, line = packed.type.rank == _TILES_IN_SEQUENCE_RANK, grid.kind.columns * grid.group_bytes
        step, pitch = (stride, line) if in_sequence else (line, stride)
        return TileAddress(packed.source, column * step, pitch)


def _group(address: TileAddress, index: int) -> TileAddress:
    """The address of a group of a tile."""
    return replace(address, offset=address.offset + index * address.stride)


def _first_place(entry: Block) -> int:
    """The index of the first instruction after stack memory."""
    return next(n for n, i in enumerate(entry.instructions) if i.opcode != "alloca")


def _itself(tile: Value) -> Value:
    return tile
