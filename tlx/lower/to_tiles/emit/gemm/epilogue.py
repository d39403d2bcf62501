"""The epilogue of a product: an expression on its sums, whose results are stored or reduced.

A short epilogue is computed row by row on the sums in registers. A long one, and any epilogue on a matrix unit, goes
through a small tile in memory, so that its code is emitted once and can use all registers (tiles of vector code whose
widths are equal share it as a function, whatever their heights):

    %row = shufflevector %sums, <r*cols ... >           store %sums, %tile
    %y = ... %row, load x[r] ...                  or    for r, for c: %y = ... load %tile[r][c], load x[r][c] ...
    store %y, c[r]                                                    store %y, c[r][c]

A column-major result is transposed on its way to memory, a register of each row at a time. A tile of several registers
in a row goes through memory, too: unrolled, its transposes would be most of the kernel's instructions.

    store %sums, %tile
    for c: %x = load %tile[:][c : c + lanes];  %y = ... %x;  store transpose(%y), c[:][c : c + lanes]

The result of an epilogue may be reduced tile by tile, so that it is never stored:

rows to a column: a register of partial results for each row, reduced to one element at the end
columns to a row: one partial result for each column
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.module import NO_SUBNORMALS
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64, FloatType, VectorType, bits_of, bytes_of
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.elementwise import ExpressionEmitter, NodeValues
from tlx.lower.to_tiles.emit.gemm.function import GemmFunction
from tlx.lower.to_tiles.emit.kernel import Scratch, ScratchBuffer, expression_parameters
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation, split_vector
from tlx.lower.to_tiles.emit.tiles import ResultTile, convert_tile, load_tile_vector, store_tile_vector, tile_address
from tlx.lower.to_tiles.emit.tiles import tile as tile_type
from tlx.lower.to_tiles.expression import Expression, MatrixLeaf, MatrixView, ProductLeaf
from tlx.lower.to_tiles.prefetch import L2_LOCALITY, PrefetchStream
from tlx.lower.to_tiles.select.recipe import EqualTiles, padded_tiles

EPILOGUE_LOOP: Final = "er"
"""The name of loops over the rows of a tile in memory."""
_MAX_COST_IN_REGISTERS: Final = 8


@dataclass(eq=False)
class TileEpilogue:
    """The epilogue of a kernel's register tiles.

    Attributes:
        function: The kernel's function.
        expression: The epilogue.
        pointers, scalars: Its leaves and scalars.
        consume: Called with each place and its result: stores it, or adds it to a reduction.
        tile: A tile in memory, where the epilogue is not computed in registers.
    """

    function: GemmFunction
    expression: Expression
    pointers: Sequence[Value]
    scalars: Sequence[Value]
    consume: Callable[[ResultTile, Value], None]
    tile: ScratchBuffer | None = None

    @classmethod
    def of(cls, function: GemmFunction, consume: Callable[[ResultTile, Value], None]) -> TileEpilogue | None:
        """The epilogue of a product; narrowing its sums counts as one. None if it has neither."""
        gemm = function.gemm
        expression = gemm.epilogue or _own_epilogue(function)
        if expression is None:
            return None
        arguments = function.arguments[4 if gemm.acc else 3 :]
        count = len(expression_parameters(expression)[0])
        return cls(function, expression, arguments[:count], arguments[count:], consume)

    def __post_init__(self) -> None:
        self.b, self.recipe, self.target = self.function.b, self.function.recipe, self.function.target

    @property
    def _stores_columns(self) -> bool:
        """Whether the results are transposed before they are stored."""
        return not self.function.gemm.c.is_row_major and self.function.gemm.reduction is None

    @property
    def _is_long(self) -> bool:
        """Whether the epilogue is computed row by row on sums in memory."""
        return self.recipe.mma.unit == "matrix" or self.expression.cost(self.target) > _MAX_COST_IN_REGISTERS

    @property
    def has_own_function(self) -> bool:
        """Whether the loops over tiles in memory move to functions of their own, which a matrix unit cannot call."""
        return self.recipe.mma.unit != "matrix" and self.tile is not None

    def reserve(self, scratch: Scratch) -> None:
        """Reserve memory for a tile where the epilogue is long, or wider tiles are transposed, or on a matrix unit."""
        height, width = (max(r.size for r in ranges) for ranges in (self.function.rows, self.function.columns))
        if self._is_long or (self._stores_columns and width > self.recipe.tile.lanes):
            self.tile = scratch.reserve(self.recipe.mma.accumulator, height * width)

    def finish(self, sums: Value, rows: EqualTiles, columns: EqualTiles, position: tuple[Value, Value]) -> None:
        """Emit the epilogue of a register tile of `sums`, at a row and a column."""
        if self._stores_columns:
            self._by_columns(sums, rows, columns, position)
        elif self.tile is None:
            self._in_registers(sums, rows, columns, position)
        else:
            self._through_scratch(sums, rows, columns, position, lambda at, _here, value: self.consume(at, value))

    def _by_columns(self, sums: Value, rows: EqualTiles, columns: EqualTiles, position: tuple[Value, Value]) -> None:
        """Emit the epilogue of a tile that is stored column by column, transposed a register of each row at a time.

        The loop depends on neither the tile's place nor its width, so that tiles of other kernels share its code.
        """
        if self.tile is None:
            self._consume(ResultTile(rows.valid, columns.size, columns.padding, *position), sums)
            return
        b, c, element = self.b, self.function.gemm.c, self.recipe.mma.accumulator
        pitch = max(r.size for r in self.function.columns)
        if self._is_long:
            pitch = columns.size * bits_of(element) // bits_of(self.expression.element)
            element = self.expression.element
            self._overwrite(sums, rows, columns, position, pitch)
        else:
            self.store_sums(sums, rows, columns, pitch)
        corner = ResultTile(1, 1, 0, *position)
        emitter = ExpressionEmitter(b, self.expression, self.pointers, self.scalars)
        origins = {leaf: emitter.address(leaf, corner) for leaf in self.expression.leaves()}
        tile, to = b.retype(self.tile.pointer, element), tile_address(b, c, self.function.c, corner)
        lanes = min(self.target.vector_bytes // bytes_of(element), columns.size)
        for piece in padded_tiles(columns.valid, lanes, lanes):
            with b.loop(0, piece.count, name=EPILOGUE_LOOP) as loop:
                start = piece.start_of(b, loop.index)
                at = ResultTile(rows.valid, piece.size, piece.padding, None, start)
                view = MatrixView(element, at.rows, at.cols - at.padding, pitch, 1)
                part = load_tile_vector(b, view, b.gep(element, tile, start), at, self._metadata_of_sums)
                result = part if self._is_long else self._result(at, part, origins=origins)
                store_tile_vector(b, c, tile_address(b, c, to, at), at, result)

    def _overwrite(
        self, sums: Value, rows: EqualTiles, columns: EqualTiles, position: tuple[Value, Value], pitch: int
    ) -> None:
        """Store the sums, and write the results over them, which are at most as wide."""
        assert self.tile is not None
        b, element = self.b, self.expression.element
        tile = b.retype(self.tile.pointer, element)

        def store(at: ResultTile, here: tuple[Value, Value], value: Value) -> None:
            address = b.gep(element, tile, b.add(b.mul(here[0], pitch), here[1]))
            store_tile_vector(b, MatrixView(element, 1, at.cols - at.padding, 0, 1), address, at, value)

        self._through_scratch(sums, rows, columns, position, store)

    def _in_registers(self, sums: Value, rows: EqualTiles, columns: EqualTiles, position: tuple[Value, Value]) -> None:
        b = self.b
        lanes = min(self.recipe.tile.lanes, columns.size)
        registers = columns.size // lanes
        live = (rows.size + self.expression.max_live - 1) * registers
        width = columns.size if live <= self.target.registers else lanes
        for row in range(rows.valid):
            for piece in padded_tiles(columns.valid, width, lanes):
                for start in range(piece.start, piece.start + piece.count * piece.size, piece.size):
                    first = row * columns.size + start
                    part = b.shuffle(sums, None, range(first, first + piece.size), "sums")
                    at = ResultTile(1, piece.size, piece.padding, b.add(position[0], row), b.add(position[1], start))
                    self._consume(at, part)

    def store_sums(self, sums: Value, rows: EqualTiles, columns: EqualTiles, pitch: int = 0) -> None:
        """Store sums to the tile in memory, whose rows are adjacent or `pitch` elements apart."""
        assert self.tile is not None
        type_ = tile_type(self.recipe.mma.accumulator, rows.size, columns.size)
        self.b.tensor_store(self.tile.pointer, self.b.typeinfo(sums, type_, "sums"), (0, pitch))

    def finish_in_c(self, rows: int, columns: EqualTiles, row: Value) -> None:
        """Emit the epilogue of some columns of `rows` rows, from `row` on, whose sums are in C."""
        b, c = self.b, self.function.gemm.c
        with b.loop(0, rows, name=EPILOGUE_LOOP) as loop:
            here = b.add(row, loop.index)
            at = ResultTile(1, columns.size, columns.padding, here, const_int(I64, columns.start))
            self._consume(at, load_tile_vector(b, c, tile_address(b, c, self.function.c, at), at))

    def prefetches(
        self, rows: EqualTiles, columns: EqualTiles, position: tuple[Value, Value], steps: int
    ) -> list[PrefetchStream]:
        """Prefetches of a tile's part of the matrices that the epilogue reads and L1 does not hold, over some steps.

        They are needed a line in each row at a time, which no processor prefetches by itself: 1024x3072x768 bfloats
        with GELU and a residual matrix took 1.62 times as long as the product with them, 1.9 times without
        (Xeon 6/167/1, medians of alternated calls, 2026-11-30).
        """
        b, streams = self.b, list[PrefetchStream]()
        emitter = ExpressionEmitter(b, self.expression, self.pointers, self.scalars)
        for leaf in self.expression.leaves():
            view, size = leaf.view, bytes_of(leaf.element)
            if self.expression.is_full(view) and view.is_row_major and view.bytes_moved > self.target.caches.l1:
                each, pitch = -(-rows.size // steps), view.row_stride * size
                address = emitter.address(leaf, ResultTile(1, columns.size, 0, *position))
                last = (rows.size - each) * pitch
                streams.append(
                    PrefetchStream(
                        address, const_int(I64, 0), columns.size * size, each * pitch, last, each, pitch, L2_LOCALITY
                    )
                )
        return streams

    def row_invariants(self, count: int, columns: EqualTiles, position: tuple[Value, Value]) -> list[NodeValues]:
        """The nodes that all rows of the tile share, such as a bias, for each part of its columns."""
        emitter = ExpressionEmitter(self.b, self.expression, self.pointers, self.scalars)
        parts = self._parts(columns)
        places = [ResultTile(count, size, 0, position[0], self.b.add(position[1], start)) for start, size in parts]
        return [emitter.row_invariants(at) for at in places]

    def compute_rows(
        self, row: Value, count: int, columns: EqualTiles, position: tuple[Value, Value], known: Sequence[NodeValues]
    ) -> None:
        """Emit the epilogue of `count` rows of the tile in memory, which has no padding, without a loop.

        Args:
            row: The first row.
            count: Rows.
            columns: The tile's columns.
            position: Row and column of the tile in the result.
            known: The values of `row_invariants`.
        """
        b, element = self.b, self.recipe.mma.accumulator
        assert self.tile is not None
        for (start, size), values in zip(self._parts(columns), known, strict=True):
            at = ResultTile(count, size, 0, b.add(position[0], row), b.add(position[1], start))
            address = b.gep(element, self.tile.pointer, b.add(b.mul(row, columns.size), start))
            view = MatrixView(element, count, size, columns.size, 1)
            part = load_tile_vector(b, view, address, at, self._metadata_of_sums)
            self.consume(at, self._result(at, part, values))

    def _parts(self, columns: EqualTiles) -> list[tuple[int, int]]:
        """Start and width of each group of columns that is computed together."""
        width = self._width(columns)
        return [(start, min(width, columns.size - start)) for start in range(0, columns.size, width)]

    def _through_scratch(
        self,
        sums: Value,
        rows: EqualTiles,
        columns: EqualTiles,
        position: tuple[Value, Value],
        consume: Callable[[ResultTile, tuple[Value, Value], Value], None],
    ) -> None:
        """Store the sums, then compute a few columns of a row at a time; `consume` gets their place in the tile."""
        b = self.b
        self.store_sums(sums, rows, columns)
        assert self.tile is not None
        element = self.recipe.mma.accumulator
        with b.loop(0, rows.valid, name=EPILOGUE_LOOP) as row:
            for piece in padded_tiles(columns.valid, self._width(columns), min(self.lanes, columns.size)):
                with b.loop(0, piece.count, name="ec") as loop:
                    start = piece.start_of(b, loop.index)
                    at = ResultTile(
                        1, piece.size, piece.padding, b.add(position[0], row.index), b.add(position[1], start)
                    )
                    address = b.gep(element, self.tile.pointer, b.add(b.mul(row.index, columns.size), start))
                    view = MatrixView(element, 1, piece.size - piece.padding, 0, 1)
                    part = load_tile_vector(b, view, address, at, self._metadata_of_sums)
                    consume(at, (row.index, start), self._result(at, part))

    @property
    def lanes(self) -> int:
        """Columns of a register."""
        return self.expression.lanes(self.target)

    def _width(self, columns: EqualTiles) -> int:
        """Columns that are computed together: two registers if enough are free, as narrow results may share one."""
        registers = 2 if 2 * self.expression.max_live <= self.target.registers else 1
        return min(columns.size, registers * self.lanes)

    @property
    def _metadata_of_sums(self) -> str:
        """Metadata for loads of sums: a matrix unit's sums are never subnormal."""
        mma = self.recipe.mma
        return NO_SUBNORMALS if mma.unit == "matrix" and isinstance(mma.accumulator, FloatType) else ""

    def _consume(self, result_tile: ResultTile, sums: Value) -> None:
        self.consume(result_tile, self._result(result_tile, sums))

    def _result(
        self,
        result_tile: ResultTile,
        sums: Value,
        known: NodeValues | None = None,
        origins: Mapping[MatrixLeaf, Value] | None = None,
    ) -> Value:
        product = convert_tile(self.b, sums, self.function.gemm.result, self.function.sign)
        emitter = ExpressionEmitter(
            self.b, self.expression, self.pointers, self.scalars, lambda _place: product, origins
        )
        return emitter.result(result_tile, known)


def _own_epilogue(function: GemmFunction) -> Expression | None:
    """The product itself, where its sums are transposed; or narrowed on a matrix unit, by way of memory.

    Narrowing as an epilogue overlaps with the products of the next tile.
    """
    gemm, recipe, matrix = function.gemm, function.recipe, function.target.matrix
    through_memory = recipe.mma.unit == "matrix" and matrix is not None and matrix.accumulators == "memory"
    narrows = through_memory and gemm.c.element != recipe.mma.accumulator and not recipe.stores.nontemporal
    if gemm.c.is_row_major and not (narrows and gemm.acc is None):
        return None
    return Expression(gemm.m, gemm.n, (ProductLeaf(gemm.c.element),))


_LONGEST_PIECE = 64


@dataclass(eq=False)
class PartialReduction:
    """A reduction of a product's epilogue, tile by tile.

    Attributes:
        b: Where to emit.
        combine: The reduction's operation.
        axis: 0: columns are reduced to a row; 1: rows to a column.
        extents: Rows and columns that are reduced.
        lanes: Elements of a register; tiles are multiples of it.
        to, base: View and address of the result.
        memory: The partial results.
    """

    b: TensorBuilder
    combine: ReductionOperation
    axis: int
    extents: tuple[int, int]
    lanes: int
    to: MatrixView
    base: Value
    memory: ScratchBuffer = field(default_factory=ScratchBuffer)

    @classmethod
    def of(cls, function: GemmFunction) -> PartialReduction | None:
        """The reduction of a product, if it has one."""
        gemm = function.gemm
        if gemm.reduction is None or gemm.epilogue is None:
            return None
        operation, axis = gemm.reduction
        lanes = min(function.recipe.tile.lanes, gemm.epilogue.lanes(function.target))
        combine = ReductionOperation(operation, gemm.epilogue.element)
        return cls(function.b, combine, axis, (gemm.m, gemm.n), lanes, gemm.c, function.c)

    @property
    def count(self) -> int:
        """Number of partial results: a multiple of `lanes`, as tiles may extend beyond the last column."""
        if self.axis == 1:
            return self.extents[0] * self.lanes
        return -(-(self.extents[1] + _LONGEST_PIECE) // self.lanes) * self.lanes

    def reserve(self, scratch: Scratch) -> None:
        """Reserve memory for the partial results."""
        self.memory = scratch.reserve(self.combine.partial_element, self.count)

    def start(self) -> None:
        """Set the partial results to the identity."""
        b = self.b
        with b.loop(0, self.count // self.lanes, name="p") as loop:
            result_tile = ResultTile(1, self.lanes, 0, None, b.mul(loop.index, self.lanes))
            self._write(result_tile, self.combine.identity(self.lanes))

    def add(self, result_tile: ResultTile, value: Value) -> None:
        """Combine a tile of one row with the partial results."""
        b = self.b
        value = self.combine.widened(b, value)
        if self.axis == 1:
            assert result_tile.row is not None
            value = self.combine.combine_all(b, split_vector(b, self.combine.masked(b, value, result_tile), self.lanes))
            result_tile = ResultTile(1, self.lanes, 0, None, b.mul(result_tile.row, self.lanes))
        else:
            result_tile = ResultTile(1, result_tile.cols, 0, None, result_tile.column)
        self._write(result_tile, self.combine.apply(b, self._read(result_tile), value))

    def finish(self) -> None:
        """Write the result."""
        b = self.b
        if self.axis == 1:
            with b.loop(0, self.extents[0], name="r") as loop:
                row = self._read(ResultTile(1, self.lanes, 0, None, b.mul(loop.index, self.lanes)))
                self._store(ResultTile(1, 1, 0, loop.index), self.combine.reduce_row(b, row, self.lanes))
            return
        for columns in padded_tiles(self.extents[1], self.lanes, self.lanes):
            with b.loop(0, columns.count, name="c") as loop:
                column = columns.start_of(b, loop.index)
                result_tile = ResultTile(1, columns.size, columns.padding, None, column)
                self._store(result_tile, self._read(result_tile))

    @property
    def _view(self) -> MatrixView:
        return MatrixView(self.combine.partial_element, 1, self.count, 0, 1)

    def _read(self, result_tile: ResultTile) -> Value:
        return load_tile_vector(
            self.b, self._view, tile_address(self.b, self._view, self.memory.pointer, result_tile), result_tile
        )

    def _write(self, result_tile: ResultTile, value: Value) -> None:
        assert isinstance(value.type, VectorType)
        store_tile_vector(
            self.b, self._view, tile_address(self.b, self._view, self.memory.pointer, result_tile), result_tile, value
        )

    def _store(self, result_tile: ResultTile, value: Value) -> None:
        address = tile_address(self.b, self.to, self.base, result_tile)
        store_tile_vector(self.b, self.to, address, result_tile, self.combine.narrowed(self.b, value))
