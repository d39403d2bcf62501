"""The register tile of a product: how its sums start, what is added to them, and how they are finished.

acc = 0 | Acc | C                         (+ correction of the xor trick)
for each product of the sum, for k: acc += A[tile, k] @ B[k, panel]
C[tile, panel] = f(acc)
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I64, VectorType, bytes_of
from tlx.ir.values import ConstInt, Value, const_int, zero
from tlx.lower.to_tiles.emit.expression import ResultTile, store_tile_vector, tile_address
from tlx.lower.to_tiles.emit.gemm.epilogue import PartialReduction, TileEpilogue
from tlx.lower.to_tiles.emit.gemm.k_loop import KLoop
from tlx.lower.to_tiles.emit.gemm.n_tail import DotProductColumns, PairedColumns
from tlx.lower.to_tiles.emit.gemm.operands import CacheBlock
from tlx.lower.to_tiles.emit.kernel import convert_tile, expression_parameters, tile
from tlx.lower.to_tiles.emit.nontemporal import ResultStores
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation
from tlx.lower.to_tiles.parallel.tile_range import arguments_and_tile_range
from tlx.lower.to_tiles.prefetch.policy import L2_LOCALITY, pieces_per_part
from tlx.lower.to_tiles.prefetch.streams import PrefetchStream
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import PAIR, Recipe, column_ranges, row_ranges
from tlx.target.hardware import Sign
from tlx.target.target import Target


class RegisterTile(KLoop):
    """Emits the register tiles of one kernel. What multiplies otherwise (a matrix unit) overrides where operands lie.

    Attributes:
        acc: Address of what is added to.
        share: The row tiles and panels that a call works on.
        stores: What stores C.
        rows, columns: Tiles along M, panels along N.
        dots: What sums the last columns along K, where there are such columns.
        pairs: What sums the last columns by pairs of positions of K, where there are such columns.
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
        """How sums are widened: a negative operand makes negative ones."""
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
        """`start` and the product of the columns whose sums are pairs."""
        for number in range(block.part.size if self.recipe.prefetch.locality else 0):
            self.prefetcher.step(const_int(I64, number))
        total = pairs.total(a, self.pitch_of_a, block.rows.size)
        return total if start == zero(start.type) else self.b.binary("fadd", start, total)

    def _look_ahead(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value], a: Value) -> None:
        """Set what a tile prefetches: rows of the next tile of C, shares of the next block's A, of the next panel.

        Args:
            block: The tile's block.
            ij: Its row tile and panel.
            place: Its row and column in C.
            a: Its part of A.
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
        """Pieces of a part, and the rows of the panel behind panel `j` that those of row tile `i` prefetch.

        Each row of the tile prefetches as many rows of B. Where that is more than B has, the last tiles prefetch the
        last rows again, which are near by then.
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
        """What follows once a tile's sums are complete."""
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
        """What the sums start from: zero, Acc or C, and a correction."""
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
        """What the xor trick added too much, as a tile; None where it is not used."""
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
    """Row and column of the tile behind tile (i, j) of a block: below it, right of it, or in the next block.

    That is below, too, or where a block has the `last` rows, at the top of the next columns.
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
    """One value where both of a pair are the same, else the other one."""
    if isinstance(pair[0], ConstInt) and isinstance(pair[1], ConstInt):
        return same if pair[0] == pair[1] else other
    return b.select(b.icmp("eq", *pair), same, other)
