"""The register tile of a product.

acc = 0 | Acc | C                         (+ correction of the xor trick)
for each term of the sum, for k: acc += A[tile, k] @ B[k, panel]
C[tile, panel] = f(acc)
"""

from __future__ import annotations

from collections.abc import Callable

from tlx.ir.types import I64, VectorType
from tlx.ir.values import Value, const_int, zero
from tlx.lower.to_tiles.emit.gemm.epilogue import PartialReduction, TileEpilogue
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction
from tlx.lower.to_tiles.emit.gemm.n_tail import PairedColumns
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.gemm.stores import ResultStores
from tlx.lower.to_tiles.emit.scratch import Scratch
from tlx.lower.to_tiles.emit.tiles import convert_tile, tile
from tlx.lower.to_tiles.prefetch.streams import Prefetcher

SumOverK = Callable[[CacheBlock, Value, Value, Value], Value]
"""Emits the sum over K of a tile: `start` plus all terms, from the addresses of the first term's operands."""
BeginTile = Callable[[CacheBlock, tuple[Value, Value], tuple[Value, Value], Value], None]
"""Sets what a tile prefetches for later ones: given its block, its number (i, j), its place, and the address of A."""


class RegisterTile:
    """Emits the register tiles of one kernel.

    Attributes:
        function: The kernel's function.
        operands: Where the operands are.
        total: Emits the sum over K.
        prefetcher: Emits the prefetches of the K loop.
        prefetch_ahead: Sets what a tile prefetches for later ones.
        stores: Emits the stores of C.
        partial: The reduction of the epilogue, if it is reduced.
        epilogue: The epilogue, if there is one.
        pairs: Emits an N tail of pairs of positions of K, if there is one.
    """

    def __init__(
        self,
        function: GemmFunction,
        operands: Operands,
        total: SumOverK,
        prefetcher: Prefetcher,
        prefetch_ahead: BeginTile,
    ) -> None:
        self.function, self.operands, self.total = function, operands, total
        self.prefetcher, self.prefetch_ahead = prefetcher, prefetch_ahead
        self.b, self.gemm, self.recipe = function.b, function.gemm, function.recipe
        self.stores = ResultStores(function)
        self.partial = PartialReduction.of(function)
        self.epilogue = TileEpilogue.of(function, self.partial.add if self.partial else self.stores.store_part)
        self.pairs = PairedColumns(function) if function.recipe.tile.paired_columns else None

    def reserve(self, scratch: Scratch) -> None:
        """Reserve the buffers of the epilogue and of stores."""
        if self.epilogue is not None:
            self.epilogue.reserve(scratch)
        self.stores.reserve(scratch)
        if self.partial is not None:
            self.partial.reserve(scratch)

    def emit(self, block: CacheBlock, i: Value, j: Value) -> None:
        """One register tile: start, sum over K, finish."""
        place = self.place(block, i, j)
        a, rhs = self.operands.a_address(block, i, place[0]), self.operands.b_address(block, j, place[1])
        start = self.start(block, (i, j), place)
        self.begin_prefetches(block, (i, j), place, a, block.columns.count)
        if self.pairs is not None and block.columns == self.pairs.columns:
            total = self._paired(self.pairs, block, start, a)
        else:
            total = self.total(block, start, a, rhs)
        self.finish(block, total, *place)

    def place(self, block: CacheBlock, i: Value, j: Value) -> tuple[Value, Value]:
        """Row and column of tile (i, j) of a block."""
        b = self.b
        row = b.add(block.row, b.mul(i, block.rows.size), "row")
        return row, b.add(block.column, b.mul(j, block.columns.size), "col")

    def begin_prefetches(
        self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value], a: Value, columns: int
    ) -> None:
        """Set what a tile prefetches; `columns` is as in `Prefetcher.begin_tile`."""
        self.prefetcher.begin_tile(block.rows.count, columns, ij)
        if self.recipe.prefetch.operands or self.recipe.stores.prefetches_lines:
            self.prefetch_ahead(block, ij, place, a)

    def _paired(self, pairs: PairedColumns, block: CacheBlock, start: Value, a: Value) -> Value:
        """`start` plus the product of the N tail in pairs."""
        for number in range(block.part.size if self.recipe.prefetch.locality else 0):
            self.prefetcher.step(const_int(I64, number))
        total = pairs.total(a, self.operands.pitch_of_a, block.rows.size)
        return total if start == zero(start.type) else self.b.binary("fadd", start, total)

    def finish(self, block: CacheBlock, total: Value, row: Value, column: Value) -> None:
        """Finish a tile: epilogue and stores."""
        gemm = self.gemm
        if self.epilogue is None:
            out = convert_tile(self.b, total, gemm.c.element, self.function.sign)
        elif self.partial is None and not gemm.c.is_row_major:
            out = self.epilogue.whole(total, block.rows, block.columns, (row, column))
        else:
            self.epilogue.finish(total, block.rows, block.columns, (row, column))
            return
        self.stores.store_tile(block, out, row, column)

    # How the sums start ----------------------------------------------------------------------------------------

    def start(self, block: CacheBlock, ij: tuple[Value, Value], place: tuple[Value, Value]) -> Value:
        """The initial sums: zero, Acc or C, plus a correction."""
        b, recipe, gemm, function = self.b, self.recipe, self.gemm, self.function
        rows, columns = block.rows, block.columns
        start: Value = zero(VectorType(rows.size * columns.size, recipe.mma.accumulator))
        view = gemm.acc if block.part.first else gemm.c
        if view is not None:
            base = function.arguments[3] if block.part.first else function.c
            type_ = tile(view.element, rows.size, columns.size, (rows.padding, columns.padding))
            token = b.tensor_load(function.at(view, base, *place), type_, (0, view.row_stride), "c")
            start = convert_tile(b, b.tovector(token, type_, "c.old"), recipe.mma.accumulator, "s")
        correction = self._correction(block, ij, place[1])
        if correction is None:
            return start
        return correction if view is None else b.binary("add", start, correction)

    def _correction(self, block: CacheBlock, ij: tuple[Value, Value], column: Value) -> Value | None:
        """The excess of the xor trick, as a tile; None where it is not used."""
        b, recipe, sums, prepacked = self.b, self.recipe, self.operands.sums, self.operands.prepacked
        by_columns = recipe.mma.correction == "columns"
        if sums is None or (prepacked is not None and by_columns and not block.part.first):
            return None
        height, width = block.rows.size, block.columns.size
        i, j = ij
        if by_columns:
            place = prepacked.place(b, block.columns, column) if prepacked else b.mul(j, width)
            address = b.gep(recipe.mma.accumulator, sums.pointer, place)
            token = b.tensor_load(address, tile(recipe.mma.accumulator, 1, width), None, "colsum")
        else:
            address = b.gep(recipe.mma.accumulator, sums.pointer, b.mul(i, height))
            token = b.tensor_load(address, tile(recipe.mma.accumulator, height, 1), None, "rowsum")
        return b.broadcast(token, (height, width), (0, 1), tile(recipe.mma.accumulator, height, width))
