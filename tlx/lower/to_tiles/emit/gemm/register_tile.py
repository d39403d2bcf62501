"""The register tile of a product: how its sums start, the K loop, and the epilogue.

acc = 0 | Acc | C                         (+ correction of the xor trick)
for each term of the sum, for k: acc += A[tile, k] @ B[k, panel]
C[tile, panel] = f(acc)

A short epilogue is computed row by row on the sums in registers. A long one, and any on a matrix unit, goes through a
small tile in memory, so that its code is emitted once and has all registers:

    %row = shufflevector %sums, <r*cols ... >           store %sums, %tile
    %y = ... %row, load x[r] ...                  or    for r, for c: %y = ... load %tile[r][c], load x[r][c] ...
    store %y, c[r]                                                    store %y, c[r][c]

The epilogue may be reduced tile by tile, without the product ever being stored:

rows to a column: a register of partial results for each row, folded at the end
columns to a row: one partial result for each column
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.module import NO_SUBNORMALS
from tlx.ir.types import I64, FloatType, Type, VectorType, bits_of, bytes_of
from tlx.ir.values import ConstInt, Value, const_int, zero
from tlx.lower.to_tiles.emit.expression import (
    ExpressionEmitter,
    ResultTile,
    load_tile_vector,
    store_tile_vector,
    tile_address,
)
from tlx.lower.to_tiles.emit.gemm.k_loop import CacheBlock, KLoop
from tlx.lower.to_tiles.emit.gemm.n_tail import DotProductColumns, PairedColumns
from tlx.lower.to_tiles.emit.kernel import ResultStores, Scratch, convert_tile, expression_parameters, tile
from tlx.lower.to_tiles.emit.kernel import tile as tile_type
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation, split_vector
from tlx.lower.to_tiles.parallel.tile_range import arguments_and_tile_range
from tlx.lower.to_tiles.prefetch.policy import L2_LOCALITY, pieces_per_part
from tlx.lower.to_tiles.prefetch.streams import PrefetchStream
from tlx.lower.to_tiles.problem.expression import Expression, MatrixView
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import PAIR, EqualTiles, Recipe, column_ranges, padded_tiles, row_ranges
from tlx.target.hardware import Sign
from tlx.target.target import Target

_MOST_IN_REGISTERS: Final = 8


@dataclass(eq=False)
class TileEpilogue:
    """The epilogue of a kernel's register tiles.

    Attributes:
        b: Where to emit.
        expression: The epilogue.
        pointers, scalars: Its leaves and scalars.
        recipe, target: The product's recipe and target.
        element: Element type of the product.
        sign: How integer sums are extended to it.
        consume: Called with each place and its result: stores it, or adds it to a reduction.
        tile: A tile in memory, where `epilogue_needs_scratch`.
    """

    b: TensorBuilder
    expression: Expression
    pointers: Sequence[Value]
    scalars: Sequence[Value]
    recipe: Recipe
    target: Target
    element: Type
    sign: Sign
    consume: Callable[[ResultTile, Value], None]
    tile: Value | None = None

    def finish(self, sums: Value, rows: EqualTiles, columns: EqualTiles, place: tuple[Value, Value]) -> None:
        """Emit the rest for the register tile of `sums` at a row and a column."""
        if self.tile is None:
            self._in_registers(sums, rows, columns, place)
        else:
            self._through_scratch(sums, rows, columns, place, lambda at, _here, value: self.consume(at, value))

    def whole(self, sums: Value, rows: EqualTiles, columns: EqualTiles, place: tuple[Value, Value]) -> Value:
        """The results of a register tile, for kernels that store them themselves."""
        if self.tile is None:
            return self._result(ResultTile(rows.size, columns.size, columns.padding, *place), sums)
        b, element = self.b, self.expression.element
        pitch = columns.size * bits_of(self.recipe.mma.accumulator) // bits_of(element)
        tile = b.retype(self.tile, element)

        def keep(at: ResultTile, here: tuple[Value, Value], value: Value) -> None:
            """Write results over their sums, which are at least as wide."""
            address = b.gep(element, tile, b.add(b.mul(here[0], pitch), here[1]))
            store_tile_vector(b, MatrixView(element, 1, at.cols - at.padding, 0, 1), address, at, value)

        self._through_scratch(sums, rows, columns, place, keep)
        there = tile_type(element, rows.size, columns.size)
        return b.tovector(b.tensor_load(tile, there, (0, pitch), "results"), there, "results")

    def _in_registers(self, sums: Value, rows: EqualTiles, columns: EqualTiles, place: tuple[Value, Value]) -> None:
        b = self.b
        lanes = min(self.recipe.tile.lanes, columns.size)
        registers = columns.size // lanes
        live = (rows.size + self.expression.live - 1) * registers
        width = columns.size if live <= self.target.registers else lanes
        for row in range(rows.valid):
            for piece in padded_tiles(columns.valid, width, lanes):
                for start in range(piece.start, piece.start + piece.count * piece.size, piece.size):
                    first = row * columns.size + start
                    part = b.shuffle(sums, None, range(first, first + piece.size), "sums")
                    at = ResultTile(1, piece.size, piece.padding, b.add(place[0], row), b.add(place[1], start))
                    self._consume(at, part)

    def keep(self, sums: Value, rows: EqualTiles, columns: EqualTiles) -> None:
        """Store sums to the tile in memory."""
        assert self.tile is not None
        type_ = tile_type(self.recipe.mma.accumulator, rows.size, columns.size)
        self.b.tensor_store(self.tile, self.b.typeinfo(sums, type_, "sums"))

    def row(self, row: Value, columns: EqualTiles, place: tuple[Value, Value]) -> None:
        """Emit the epilogue for one row of the tile in memory, unrolled and without padding."""
        b, held = self.b, self.recipe.mma.accumulator
        assert self.tile is not None
        width = self._width(columns)
        for start in range(0, columns.size, width):
            size = min(width, columns.size - start)
            at = ResultTile(1, size, 0, b.add(place[0], row), b.add(place[1], start))
            address = b.gep(held, self.tile, b.add(b.mul(row, columns.size), start))
            self._consume(at, load_tile_vector(b, MatrixView(held, 1, size, 0, 1), address, at, self._kind_of_sums))

    def _through_scratch(
        self,
        sums: Value,
        rows: EqualTiles,
        columns: EqualTiles,
        place: tuple[Value, Value],
        consume: Callable[[ResultTile, tuple[Value, Value], Value], None],
    ) -> None:
        """Store the sums, then compute a few columns of a row at a time; `consume` gets their place in the tile."""
        b = self.b
        self.keep(sums, rows, columns)
        assert self.tile is not None
        held = self.recipe.mma.accumulator
        with b.loop(0, rows.valid, name="er") as row:
            for piece in padded_tiles(columns.valid, self._width(columns), min(self._lanes, columns.size)):
                with b.loop(0, piece.count, name="ec") as loop:
                    start = piece.start_of(b, loop.index)
                    at = ResultTile(1, piece.size, piece.padding, b.add(place[0], row.index), b.add(place[1], start))
                    address = b.gep(held, self.tile, b.add(b.mul(row.index, columns.size), start))
                    view = MatrixView(held, 1, piece.size - piece.padding, 0, 1)
                    part = load_tile_vector(b, view, address, at, self._kind_of_sums)
                    consume(at, (row.index, start), self._result(at, part))

    @property
    def _lanes(self) -> int:
        """Columns of a register."""
        return max(1, self.target.vector_bytes * 8 // self.expression.bits)

    def _width(self, columns: EqualTiles) -> int:
        """Columns that are computed together: two registers, which narrower results may share, if enough are free."""
        registers = 2 if 2 * self.expression.live <= self.target.registers else 1
        return min(columns.size, registers * self._lanes)

    @property
    def _kind_of_sums(self) -> str:
        """Metadata for loads of sums: those of a matrix unit are not subnormal."""
        mma = self.recipe.mma
        return NO_SUBNORMALS if mma.unit == "matrix" and isinstance(mma.accumulator, FloatType) else ""

    def _consume(self, place: ResultTile, sums: Value) -> None:
        self.consume(place, self._result(place, sums))

    def _result(self, place: ResultTile, sums: Value) -> Value:
        product = convert_tile(self.b, sums, self.element, self.sign)
        return ExpressionEmitter(self.b, self.expression, self.pointers, self.scalars, lambda _place: product).result(
            place
        )


def epilogue_needs_scratch(expression: Expression, recipe: Recipe) -> bool:
    """Whether the epilogue goes through a tile in memory."""
    return recipe.mma.unit == "matrix" or expression.cost > _MOST_IN_REGISTERS


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
        memory: Address of the partial results.
    """

    b: TensorBuilder
    combine: ReductionOperation
    axis: int
    extents: tuple[int, int]
    lanes: int
    to: MatrixView
    base: Value
    memory: Value | None = None

    @property
    def count(self) -> int:
        """Number of partial results: a multiple of `lanes`, as tiles may extend beyond the last column."""
        if self.axis == 1:
            return self.extents[0] * self.lanes
        return -(-(self.extents[1] + _LONGEST_PIECE) // self.lanes) * self.lanes

    def reserve(self, scratch: Scratch) -> None:
        """Reserve memory for the partial results."""
        scratch.reserve(self.combine.held, self.count)

    def start(self) -> None:
        """Set the partial results to the identity."""
        b = self.b
        with b.loop(0, self.count // self.lanes, name="p") as loop:
            place = ResultTile(1, self.lanes, 0, None, b.mul(loop.index, self.lanes))
            self._write(place, self.combine.identity(self.lanes))

    def add(self, place: ResultTile, value: Value) -> None:
        """Combine a tile of one row with the partial results."""
        b = self.b
        value = self.combine.widened(b, value)
        if self.axis == 1:
            assert place.row is not None
            value = self.combine.all_of(b, split_vector(b, self.combine.masked(b, value, place), self.lanes))
            place = ResultTile(1, self.lanes, 0, None, b.mul(place.row, self.lanes))
        else:
            place = ResultTile(1, place.cols, 0, None, place.column)
        self._write(place, self.combine.apply(b, self._read(place), value))

    def finish(self) -> None:
        """Write the result."""
        b = self.b
        if self.axis == 1:
            with b.loop(0, self.extents[0], name="r") as loop:
                row = self._read(ResultTile(1, self.lanes, 0, None, b.mul(loop.index, self.lanes)))
                self._store(ResultTile(1, 1, 0, loop.index), self.combine.folded(b, row, self.lanes))
            return
        for columns in padded_tiles(self.extents[1], self.lanes, self.lanes):
            with b.loop(0, columns.count, name="c") as loop:
                column = columns.start_of(b, loop.index)
                place = ResultTile(1, columns.size, columns.padding, None, column)
                self._store(place, self._read(place))

    @property
    def _view(self) -> MatrixView:
        return MatrixView(self.combine.held, 1, self.count, 0, 1)

    def _read(self, place: ResultTile) -> Value:
        assert self.memory is not None
        return load_tile_vector(self.b, self._view, tile_address(self.b, self._view, self.memory, place), place)

    def _write(self, place: ResultTile, value: Value) -> None:
        assert self.memory is not None
        assert isinstance(value.type, VectorType)
        store_tile_vector(self.b, self._view, tile_address(self.b, self._view, self.memory, place), place, value)

    def _store(self, place: ResultTile, value: Value) -> None:
        address = tile_address(self.b, self.to, self.base, place)
        store_tile_vector(self.b, self.to, address, place, self.combine.narrowed(self.b, value))


class RegisterTile(KLoop):
    """Emits the register tiles of one kernel; matrix units override where operands are.

    Attributes:
        acc: Address of Acc.
        share: The row tiles and panels that a call computes.
        stores: Emits the stores of C.
        rows, columns: Tiles along M, panels along N.
        dots: Emits an N tail of sums along K, if there is one.
        pairs: Emits an N tail of pairs of positions of K, if there is one.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        pointers, self.share = arguments_and_tile_range(b.function)
        self.acc = pointers[3] if gemm.acc else None
        self.stores = ResultStores(b, self.c, gemm, recipe)
        self.partial = self._partial(target)
        self.epilogue = self._epilogue(target, pointers[4 if gemm.acc else 3 :])
        self.columns = column_ranges(gemm, recipe)
        self.rows = row_ranges(gemm, recipe)
        self.dots = (
            DotProductColumns(b, gemm, target, recipe.tile.dot_columns, recipe.tile.lanes, self.pitch_of_a)
            if recipe.tile.dot_columns
            else None
        )
        self.pairs = self._pairs(target) if recipe.tile.paired_columns else None

    def _pairs(self, target: Target) -> PairedColumns:
        recipe, gemm = self.recipe, self.gemm
        once = recipe.packing.a and gemm.m <= recipe.tile.mr and gemm.m % PAIR == 0
        return PairedColumns(self.b, gemm.b, recipe.mma.accumulator, self.columns[-1], target, recipe.packing.a, once)

    def _epilogue(self, target: Target, arguments: Sequence[Value]) -> TileEpilogue | None:
        gemm = self.gemm
        if gemm.epilogue is None:
            return None
        count = len(expression_parameters(gemm.epilogue)[0])
        leaves, scalars = arguments[:count], arguments[count:]
        consume = self.partial.add if self.partial else self._store_part
        return TileEpilogue(
            self.b, gemm.epilogue, leaves, scalars, self.recipe, target, gemm.result, self._sign, consume
        )

    def _partial(self, target: Target) -> PartialReduction | None:
        gemm = self.gemm
        if gemm.reduction is None or gemm.epilogue is None:
            return None
        operation, axis = gemm.reduction
        lanes = min(self.recipe.tile.lanes, max(1, target.vector_bytes * 8 // gemm.epilogue.bits))
        combine = ReductionOperation(operation, gemm.epilogue.element)
        return PartialReduction(self.b, combine, axis, (gemm.m, gemm.n), lanes, gemm.c, self.c)

    @property
    def _sign(self) -> Sign:
        """How sums are extended: signed if an operand is."""
        return "u" if self.gemm.lhs_sign == self.gemm.rhs_sign == "u" else "s"

    def _store_part(self, place: ResultTile, value: Value) -> None:
        store_tile_vector(self.b, self.gemm.c, tile_address(self.b, self.gemm.c, self.c, place), place, value)

    # One register tile -----------------------------------------------------------------------------------------

    def tile(self, block: CacheBlock, i: Value, j: Value) -> None:
        """One register tile: start, sum over K, finish."""
        b = self.b
        row = b.add(block.row, b.mul(i, block.rows.size), "row")
        column = b.add(block.column, b.mul(j, block.columns.size), "col")
        a = self.a_address(block, i, row)
        rhs = self.b_address(block, j, column)
        start = self.start(block, (i, j), (row, column))
        self.prefetcher.begin_tile(block.rows.count, block.columns.count, (i, j))
        if self.recipe.prefetch.operands or self.recipe.stores.prefetches_lines:
            self._look_ahead(block, (i, j), (row, column), a)
        if self.pairs is not None and block.columns == self.pairs.columns:
            total = self._paired(self.pairs, block, start, a)
        else:
            total = self.total(block, start, a, rhs)
        self.finish(block, total, row, column)

    def _paired(self, pairs: PairedColumns, block: CacheBlock, start: Value, a: Value) -> Value:
        """`start` plus the product of the N tail in pairs."""
        for number in range(block.part.size if self.recipe.prefetch.locality else 0):
            self.prefetcher.step(const_int(I64, number))
        total = pairs.total(a, self.pitch_of_a, block.rows.size)
        return total if start == zero(start.type) else self.b.binary("fadd", start, total)

    def _look_ahead(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value], a: Value) -> None:
        """Set what a tile prefetches: rows of the next tile of C, parts of the next block's A and of the next panel.

        Args:
            block: The tile's cache block.
            ij: Numbers of its row tile and panel.
            place: Its row and column in C.
            a: Address of its rows of A.
        """
        del place, a
        b, gemm, prefetcher, operands = self.b, self.gemm, self.prefetcher, self.recipe.prefetch.operands
        height, width, (i, j) = block.rows.size, block.columns.size, ij
        if "C" in operands:
            last = block.rows is self.rows[-1] and block.rows.count * height <= self.recipe.blocks.mc
            row, column = next_tile_position(b, block, i, j, last=last)
            size, by_rows = bytes_of(gemm.c.element), gemm.c.is_row_major
            offset = b.mul(b.add(b.mul(row, gemm.c.row_stride), b.mul(column, gemm.c.col_stride)), size)
            length, each = (width, 1) if by_rows else (height, -(-width // height))
            pitch = gemm.c.pitch * size
            prefetcher.at_parts = PrefetchStream(
                self.c, offset, length * size, each * pitch, rows=each, pitch=pitch, locality=L2_LOCALITY
            )
        if "A" in operands:
            size = bytes_of(self.recipe.mma.operand_a)
            share = -(-block.part.size // max(1, self.recipe.blocks.nc // width))
            row = b.add(block.row, b.mul(b.add(i, block.tiles), height))
            base, pitch, start = self.rows_of_a(block.part)
            offset = b.mul(b.add(b.add(b.mul(row, pitch), start), b.mul(j, share)), size)
            prefetcher.over_parts = PrefetchStream(base, offset, share * size, pitch * size, locality=L2_LOCALITY)
        if "B" in operands:
            prefetcher.pieces, prefetcher.over_pieces = self._next_panel(block, i, j)

    def _next_panel(self, block: CacheBlock, i: Value, j: Value) -> tuple[int, PrefetchStream]:
        """How many pieces a part has, and the rows of the panel after panel `j` that row tile `i` prefetches.

        Each row of the tile prefetches the same number of rows of B. Where that is more than B has, the last tiles
        prefetch the last rows again, which are in the caches by then.
        """
        b, view = self.b, self.gemm.b
        size = bytes_of(view.element)
        pieces = pieces_per_part(self.recipe, block.part.size, self.gemm.m)
        height = block.rows.size
        first = b.mul(b.add(block.row, b.mul(i, height)), pieces)
        row = b.add(b.umin(first, block.part.size - pieces * height), block.part.start)
        column = b.add(block.column, b.mul(b.add(j, 1), block.columns.size))
        offset = b.mul(b.add(b.mul(row, view.row_stride), column), size)
        length, pitch = block.columns.size * size, view.row_stride * size
        return pieces, PrefetchStream(self.b_in, offset, length, pitch, locality=L2_LOCALITY)

    def finish(self, block: CacheBlock, total: Value, row: Value, column: Value) -> None:
        """Finish a tile: epilogue and stores."""
        b, gemm = self.b, self.gemm
        if self.epilogue is None:
            out = convert_tile(b, total, gemm.c.element, self._sign)
        elif self.partial is None and not gemm.c.is_row_major:
            out = self.epilogue.whole(total, block.rows, block.columns, (row, column))
        else:
            self.epilogue.finish(total, block.rows, block.columns, (row, column))
            return
        padding = (block.rows.padding, block.columns.padding)
        type_ = tile(gemm.c.element, block.rows.size, block.columns.size, padding)
        token = b.typeinfo(out, type_, "c")
        if not gemm.c.is_row_major:
            type_ = type_.transposed((1, 0))
            token = b.typeinfo(b.transpose(token, (1, 0), type_, "c.columns"), type_, "c")
        self.stores.store(self.at(gemm.c, self.c, row, column), token, gemm.c.pitch)

    # How the sums start ----------------------------------------------------------------------------------------

    def start(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value]) -> Value:
        """The initial sums: zero, Acc or C, plus a correction."""
        b, recipe, gemm = self.b, self.recipe, self.gemm
        rows, columns = block.rows, block.columns
        start: Value = zero(VectorType(rows.size * columns.size, recipe.mma.accumulator))
        view, base = (gemm.acc, self.acc) if block.part.first else (gemm.c, self.c)
        if view is not None and base is not None:
            type_ = tile(view.element, rows.size, columns.size, (rows.padding, columns.padding))
            token = b.tensor_load(self.at(view, base, *place), type_, (0, view.row_stride), "c")
            start = convert_tile(b, b.tovector(token, type_, "c.old"), recipe.mma.accumulator, "s")
        correction = self.correction(block, ij, place[1])
        if correction is None:
            return start
        return correction if view is None else b.binary("add", start, correction)

    def correction(self, block: CacheBlock, ij: tuple[Value, Value], column: Value) -> Value | None:
        """The excess of the xor trick, as a tile; None where it is not used."""
        b, recipe = self.b, self.recipe
        columns = recipe.mma.correction == "columns"
        if self.sums is None or (self.shared is not None and columns and not block.part.first):
            return None
        height, width = block.rows.size, block.columns.size
        i, j = ij
        if recipe.mma.correction == "columns":
            place = self.shared.place(b, block.columns, column) if self.shared else b.mul(j, width)
            address = b.gep(recipe.mma.accumulator, self.sums, place)
            token = b.tensor_load(address, tile(recipe.mma.accumulator, 1, width), None, "colsum")
        else:
            address = b.gep(recipe.mma.accumulator, self.sums, b.mul(i, height))
            token = b.tensor_load(address, tile(recipe.mma.accumulator, height, 1), None, "rowsum")
        return b.broadcast(token, (height, width), (0, 1), tile(recipe.mma.accumulator, height, width))


def next_tile_position(b: TensorBuilder, block: CacheBlock, i: Value, j: Value, *, last: bool) -> tuple[Value, Value]:
    """Row and column of the tile after tile (i, j) of a block: below it, right of it, or in the next block.

    The next block is below this one or, if this one has the `last` rows, at the top of the next columns.
    """
    nothing = const_int(I64, 0)
    below = b.add(i, 1)
    beside = _select_pair(b, (below, block.tiles), b.add(j, 1), j)
    below = _select_pair(b, (below, block.tiles), nothing, below)
    ends = beside, block.panels
    if not last:
        below = _select_pair(b, ends, block.tiles, below)
        beside = _select_pair(b, ends, nothing, beside)
    row, column = b.mul(below, block.rows.size), b.mul(beside, block.columns.size)
    row = b.add(block.row, row)
    return _select_pair(b, ends, nothing, row) if last else row, b.add(block.column, column)


def _select_pair(b: TensorBuilder, pair: tuple[Value, Value], same: Value, other: Value) -> Value:
    """`same` if both of a pair are equal, else `other`."""
    if isinstance(pair[0], ConstInt) and isinstance(pair[1], ConstInt):
        return same if pair[0] == pair[1] else other
    return b.select(b.icmp("eq", *pair), same, other)
