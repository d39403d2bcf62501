"""The register tile of a product: how its sums start, what is added to them, and how they are finished.

acc = 0 | Acc | C                         (+ correction of the xor trick)
for each product of the sum, for k: acc += A[tile, k] @ B[k, panel]
C[tile, panel] = f(acc)
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I64, VectorType, bits_of
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_tiles.emit.expression import ResultTile, store_tile_vector, tile_address
from tlx.lower.to_tiles.emit.gemm.epilogue import PartialReduction, TileEpilogue
from tlx.lower.to_tiles.emit.gemm.k_loop import KLoop
from tlx.lower.to_tiles.emit.gemm.n_tail import DotProductColumns, PairedColumns
from tlx.lower.to_tiles.emit.gemm.operands import CacheBlock
from tlx.lower.to_tiles.emit.kernel import convert_tile, expression_parameters, tile
from tlx.lower.to_tiles.emit.reduction_operation import ReductionOperation
from tlx.lower.to_tiles.parallel.tile_range import arguments_and_tile_range
from tlx.lower.to_tiles.prefetch.emitters import PrefetchStrip, next_tile_position
from tlx.lower.to_tiles.prefetch.policy import pieces_per_part
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import PAIR, Recipe, column_ranges, row_ranges
from tlx.target.hardware import Sign
from tlx.target.target import Target


class RegisterTile(KLoop):
    """Emits the register tiles of one kernel. What multiplies otherwise (a matrix unit) overrides where operands lie.

    Attributes:
        acc: Address of what is added to.
        share: The row tiles and panels that a call works on.
        rows, columns: Tiles along M, panels along N.
        dots: What sums the last columns along K, where there are such columns.
        pairs: What sums the last columns by pairs of positions of K, where there are such columns.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        pointers, self.share = arguments_and_tile_range(b.function)
        self.acc = pointers[3] if gemm.acc else None
        self.partial = self._partial(target)
        self.epilogue = self._epilogue(target, pointers[4 if gemm.acc else 3 :])
        self.columns = column_ranges(gemm, recipe)
        self.rows = row_ranges(gemm, recipe)
        self.dots = (
            DotProductColumns(b, gemm, target, recipe.dots, recipe.lanes, self.pitch_of_a) if recipe.dots else None
        )
        self.pairs = self._pairs(target) if recipe.pairs else None

    def _pairs(self, target: Target) -> PairedColumns:
        recipe, gemm = self.recipe, self.gemm
        once = recipe.pack_a and gemm.m <= recipe.mr and gemm.m % PAIR == 0
        return PairedColumns(self.b, gemm.b, recipe.accumulator, self.columns[-1], target, recipe.pack_a, once)

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
        lanes = min(self.recipe.lanes, max(1, target.vector_bytes * 8 // gemm.epilogue.bits))
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
        self.next_round.enter(block.rows.count, block.columns.count, (i, j))
        if self.recipe.asks or self.recipe.own_lines:
            self._look_ahead(block, i, j)
        if self.pairs is not None and block.columns == self.pairs.columns:
            total = self._paired(self.pairs, block, start, a)
        else:
            total = self.total(block, start, a, rhs)
        self.finish(block, total, row, column)

    def _paired(self, pairs: PairedColumns, block: CacheBlock, start: Value, a: Value) -> Value:
        """`start` and the product of the columns whose sums are pairs."""
        for number in range(block.part.size if self.recipe.fetch else 0):
            self.next_round.fetch(const_int(I64, number))
        total = pairs.total(a, self.pitch_of_a, block.rows.size)
        return total if start == zero(start.type) else self.b.binary("fadd", start, total)

    def _look_ahead(self, block: CacheBlock, i: Value, j: Value) -> None:
        """Note what the tile asks for: the next one's rows of C, shares of the next block's A, of the next panel."""
        b, gemm, recipe = self.b, self.gemm, self.recipe
        height, width = block.rows.size, block.columns.size
        if "C" in recipe.asks:
            last = block.rows is self.rows[-1] and block.rows.count * height <= recipe.mc
            row, column = next_tile_position(b, block, i, j, last=last)
            size, by_rows = bits_of(gemm.c.element) // 8, gemm.c.is_row_major
            offset = b.mul(b.add(b.mul(row, gemm.c.row_stride), b.mul(column, gemm.c.col_stride)), size)
            length, each = (width, 1) if by_rows else (height, -(-width // height))
            self.next_tile.at_once = PrefetchStrip(self.c, offset, gemm.c.pitch * size, length * size, each)
        if "A" in recipe.asks:
            size = bits_of(recipe.operand_a) // 8
            share = -(-block.part.size // max(1, recipe.nc // width))
            row = b.add(block.row, b.mul(b.add(i, block.tiles), height))
            base, pitch, start = self.rows_of_a(block.part)
            offset = b.mul(b.add(b.add(b.mul(row, pitch), start), b.mul(j, share)), size)
            self.next_tile.by_steps = PrefetchStrip(base, offset, pitch * size, share * size)
        if "B" in recipe.asks:
            self.next_tile.pieces, self.next_tile.by_pieces = self._next_panel(block, i, j)

    def _next_panel(self, block: CacheBlock, i: Value, j: Value) -> tuple[int, PrefetchStrip]:
        """Pieces of a part, and the rows of the panel behind panel `j` that those of row tile `i` ask for.

        Each row of the tile asks for as many rows of B. Where that is more than B has, the last tiles ask for the last
        rows again, which are near by then.
        """
        b, view = self.b, self.gemm.b
        size = bits_of(view.element) // 8
        pieces = pieces_per_part(self.recipe, block.part.size, self.gemm.m)
        height = block.rows.size
        first = b.mul(b.add(block.row, b.mul(i, height)), pieces)
        row = b.add(b.umin(first, block.part.size - pieces * height), block.part.start)
        column = b.add(block.column, b.mul(b.add(j, 1), block.columns.size))
        offset = b.mul(b.add(b.mul(row, view.row_stride), column), size)
        return pieces, PrefetchStrip(self.b_in, offset, view.row_stride * size, block.columns.size * size)

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
        self.next_round.store(self.at(gemm.c, self.c, row, column), token, gemm.c.pitch)

    # How the sums start ----------------------------------------------------------------------------------------

    def start(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value]) -> Value:
        """What the sums start from: zero, Acc or C, and a correction."""
        b, recipe, gemm = self.b, self.recipe, self.gemm
        rows, columns = block.rows, block.columns
        start: Value = zero(VectorType(rows.size * columns.size, recipe.accumulator))
        view, base = (gemm.acc, self.acc) if block.part.first else (gemm.c, self.c)
        if view is not None and base is not None:
            type_ = tile(view.element, rows.size, columns.size, (rows.padding, columns.padding))
            token = b.tensor_load(self.at(view, base, *place), type_, (0, view.row_stride), "c")
            start = convert_tile(b, b.tovector(token, type_, "c.old"), recipe.accumulator, "s")
        correction = self.correction(block, ij, place[1])
        if correction is None:
            return start
        return correction if view is None else b.binary("add", start, correction)

    def correction(self, block: CacheBlock, ij: tuple[Value, Value], column: Value) -> Value | None:
        """What the xor trick added too much, as a tile; None where it is not used."""
        b, recipe = self.b, self.recipe
        if self.sums is None or (self.shared is not None and recipe.correction == "columns" and not block.part.first):
            return None
        height, width = block.rows.size, block.columns.size
        i, j = ij
        if recipe.correction == "columns":
            place = self.shared.place(b, block.columns, column) if self.shared else b.mul(j, width)
            address = b.gep(recipe.accumulator, self.sums, place)
            token = b.tensor_load(address, tile(recipe.accumulator, 1, width), None, "colsum")
        else:
            address = b.gep(recipe.accumulator, self.sums, b.mul(i, height))
            token = b.tensor_load(address, tile(recipe.accumulator, height, 1), None, "rowsum")
        return b.broadcast(token, (height, width), (0, 1), tile(recipe.accumulator, height, width))
