"""The register tile of a product, and its stores, which may be non-temporal.

acc = 0 | Acc | sums                      (+ correction of the xor trick)
for each term of the sum, for k: acc += A[tile, k] @ B[k, panel]
sums[tile, panel] = acc                   in all passes over K but the last
C[tile, panel] = f(acc)                   in the last pass
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.module import nontemporal_metadata
from tlx.ir.types import I64, VectorType, bytes_of
from tlx.ir.values import Local, Value, const_int, zero
from tlx.lower.to_tiles.emit.gemm.epilogue import PartialReduction, TileEpilogue
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction
from tlx.lower.to_tiles.emit.gemm.n_tail import PairedColumns
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.kernel import Scratch, ScratchBuffer
from tlx.lower.to_tiles.emit.tiles import ResultTile, convert_tile, store_tile_vector, tile, tile_address
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.prefetch import Prefetcher
from tlx.lower.to_tiles.select.recipe import padded_tiles

SumOverK = Callable[[CacheBlock, Value, tuple[Value, Value]], Value]
"""Emits the sum over K of a tile: `start` plus all terms, from the addresses of the first term's operands."""
BeginTile = Callable[[CacheBlock, tuple[Value, Value], tuple[Value, Value], Value], None]
"""Sets what a tile prefetches for later tiles, from its block, number (i, j), place, and address of A."""


class RegisterTile:
    """Emits the register tiles of one kernel.

    Attributes:
        function: The kernel's function.
        operands: Gives the operands' addresses.
        total: Emits the sum over K.
        prefetcher: Emits the prefetches of the K loop.
        prefetch_ahead: Sets what a tile prefetches for later ones.
        stores: Emits the stores of C.
        partial: The reduction of the epilogue, if it is reduced.
        epilogue: The epilogue, if there is one.
        pairs: Emits an N tail with pairs of positions of K, if there is one.
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
        sums = self.function.sums
        if sums.memory.address is None and self.function.splits_k:
            sums.memory = scratch.reserve(sums.view.element, sums.view.size)

    def emit(self, block: CacheBlock, i: Value, j: Value) -> None:
        """Emit one register tile: initial sums, sum over K, epilogue and stores."""
        position = self.place(block, i, j)
        a, rhs = self.operands.a_address(block, i, position[0]), self.operands.b_address(block, j, position[1])
        start = self.start(block, (i, j), position)
        self.begin_prefetches(block, (i, j), position, a, block.columns.count)
        if self.pairs is not None and block.columns == self.pairs.columns:
            total = self._paired(self.pairs, block, start, a)
        else:
            total = self.total(block, start, (a, rhs))
        self.finish(block, total, *position)

    def place(self, block: CacheBlock, i: Value, j: Value) -> tuple[Value, Value]:
        """Row and column of tile (i, j) of a block."""
        b = self.b
        row = b.add(block.row, b.mul(i, block.rows.size), "row")
        return row, b.add(block.column, b.mul(j, block.columns.size), "col")

    def begin_prefetches(
        self, block: CacheBlock, ij: tuple[Value, Value], position: tuple[Value, Value], a: Value, columns: int
    ) -> None:
        """Set what a tile prefetches; `columns` is as in `Prefetcher.begin_tile`."""
        self.prefetcher.begin_tile(block.rows.count, columns, ij)
        if self.recipe.prefetch.operands or self.recipe.stores.prefetches_lines:
            self.prefetch_ahead(block, ij, position, a)

    def _paired(self, pairs: PairedColumns, block: CacheBlock, start: Value, a: Value) -> Value:
        """`start` plus the product of the N tail in pairs."""
        for number in range(block.k_pass.size if self.recipe.prefetch.locality else 0):
            self.prefetcher.step(const_int(I64, number))
        total = pairs.total(a, self.operands.pitch_of_a, block.rows.size)
        return total if start == zero(start.type) else self.b.binary("fadd", start, total)

    def finish(self, block: CacheBlock, total: Value, row: Value, column: Value) -> None:
        """Finish a tile: epilogue and stores; or store its partial sums."""
        gemm = self.gemm
        if not block.k_pass.is_last:
            sums = self.function.sums
            self.stores.store_tile(block, total, row, column, (sums.view, sums.memory.pointer))
            return
        if self.epilogue is None:
            out = convert_tile(self.b, total, gemm.c.element, self.function.sign)
            self.stores.store_tile(block, out, row, column)
        else:
            self.epilogue.finish(total, block.rows, block.columns, (row, column))

    # How the sums start ----------------------------------------------------------------------------------------

    def start(self, block: CacheBlock, ij: tuple[Value, Value], position: tuple[Value, Value]) -> Value:
        """The initial sums: zero, Acc or partial sums, plus a correction."""
        start, correction = self.uncorrected_start(block, position), self._correction(block, ij, position[1])
        if correction is None:
            return start
        return self.b.binary("add", start, correction) if self._starts_from_memory(block) else correction

    def _starts_from_memory(self, block: CacheBlock) -> bool:
        """Whether the sums start from Acc or partial sums."""
        return not block.k_pass.is_first or self.gemm.acc is not None

    def uncorrected_start(self, block: CacheBlock, position: tuple[Value, Value]) -> Value:
        """The initial sums without a correction."""
        b, recipe, gemm, function = self.b, self.recipe, self.gemm, self.function
        rows, columns = block.rows, block.columns
        start: Value = zero(VectorType(rows.size * columns.size, recipe.mma.accumulator))
        view = gemm.acc if block.k_pass.is_first else function.sums.view
        if view is not None:
            base = function.arguments[3] if block.k_pass.is_first else function.sums.memory.pointer
            type_ = tile(view.element, rows.size, columns.size, (rows.padding, columns.padding))
            token = b.tensor_load(function.at(view, base, *position), type_, (0, view.row_stride), "c")
            start = convert_tile(b, b.tovector(token, type_, "c.old"), recipe.mma.accumulator, "s")
        return start

    def _correction(self, block: CacheBlock, ij: tuple[Value, Value], column: Value) -> Value | None:
        """The excess of the xor trick, as a tile; None where it is not used."""
        b, recipe, sums, prepacked = self.b, self.recipe, self.operands.sums, self.operands.prepacked
        by_columns = recipe.mma.correction == "columns"
        if sums is None or (prepacked is not None and by_columns and not block.k_pass.is_first):
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


_ROWS_AT_ONCE: Final = 4
"""Rows of a matrix unit's tile that non-temporal stores write at a time."""


class ResultStores:
    """Emits the stores of C: non-temporal if the recipe requests it and C is aligned at run time.

    A matrix unit has no non-temporal tile stores: a tile is stored to a buffer, and copied from there by vector stores.

    Attributes:
        function: The kernel's function.
        buffer: The buffer of a matrix unit with non-temporal stores.
    """

    def __init__(self, function: GemmFunction) -> None:
        self.function = function
        self.buffer: ScratchBuffer | None = None
        self._aligned: Value | None = None
        b, recipe = function.b, function.recipe
        if recipe.stores.nontemporal:
            size = recipe.tile.lanes * bytes_of(function.gemm.c.element)
            excess = b.binary("and", b.cast("ptrtoint", function.c, I64), const_int(I64, size - 1))
            self._aligned = b.icmp("eq", excess, const_int(I64, 0))

    def reserve(self, scratch: Scratch) -> None:
        """Reserve the buffer, if it is used."""
        function, recipe = self.function, self.function.recipe
        if recipe.mma.unit == "matrix" and recipe.stores.nontemporal and function.gemm.epilogue is None:
            height, width = (max(r.size for r in ranges) for ranges in (function.rows, function.columns))
            self.buffer = scratch.reserve(recipe.mma.accumulator, height * width)

    def store_part(self, result_tile: ResultTile, value: Value) -> None:
        """Store some columns of rows of C."""
        b, view = self.function.b, self.function.gemm.c
        store_tile_vector(b, view, tile_address(b, view, self.function.c, result_tile), result_tile, value)

    def store_tile(
        self,
        block: CacheBlock,
        tile_of_c: Value,
        row: Value,
        column: Value,
        to: tuple[MatrixView, Value] | None = None,
    ) -> None:
        """Store a register tile to C or `to` another matrix, which is row-major."""
        function, b = self.function, self.function.b
        view, base = to or (function.gemm.c, function.c)
        if self.buffer is not None:
            self._store_through(self.buffer, block, tile_of_c, row, column)
            return
        padding = (block.rows.padding, block.columns.padding)
        type_ = tile(view.element, block.rows.size, block.columns.size, padding)
        token = b.typeinfo(tile_of_c, type_, "c")
        self._store(function.at(view, base, row, column), token, view.pitch)

    def _store_through(self, buffer: ScratchBuffer, block: CacheBlock, sums: Value, row: Value, column: Value) -> None:
        """Store a tile to the buffer, and copy it from there a few rows at a time."""
        function, b, c, columns = self.function, self.function.b, self.function.gemm.c, block.columns
        b.tensor_store(buffer.pointer, b.typeinfo(sums, tile(c.element, block.rows.size, columns.size), "sums"))
        for rows in padded_tiles(block.rows.valid, _ROWS_AT_ONCE, 1):
            part = tile(c.element, rows.size, columns.size, (rows.padding, columns.padding))
            with b.loop(0, rows.count, name="copy") as loop:
                at = rows.start_of(b, loop.index)
                copied = b.gep(c.element, buffer.pointer, b.mul(at, columns.size))
                token = b.tensor_load(copied, part, (0, columns.size), "sums")
                self._store(function.at(c, function.c, b.add(row, at), column), token, c.row_stride)

    def _store(self, address: Value, token: Local, pitch: int) -> None:
        b = self.function.b
        if self._aligned is None:
            b.tensor_store(address, token, (0, pitch))
            return
        nontemporal = b.new_block("nontemporal", b.block)
        usual = b.new_block("temporal", nontemporal)
        stored = b.new_block("stored", usual)
        b.branch_if(self._aligned, nontemporal, usual)
        for block, mark in ((nontemporal, nontemporal_metadata(b.module)), (usual, "")):
            b.at_end(block)
            b.tensor_store(address, token, (0, pitch), metadata=mark)
            b.branch(stored)
        b.at_end(stored)
