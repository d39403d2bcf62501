"""The stores of a product's tiles, which may be non-temporal."""

from __future__ import annotations

from typing import Final

from tlx.ir.module import nontemporal_metadata
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Local, Value, const_int
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction
from tlx.lower.to_tiles.emit.scratch import Buffer, Scratch
from tlx.lower.to_tiles.emit.tiles import ResultTile, store_tile_vector, tile, tile_address
from tlx.lower.to_tiles.select.recipe import padded_tiles

_ROWS_AT_ONCE: Final = 4
"""Rows of a matrix unit's tile that non-temporal stores write at a time."""


class ResultStores:
    """Emits the stores of C: non-temporal if the recipe says so and C is aligned at run time.

    A matrix unit's tile stores are never non-temporal: a tile is stored to a buffer, and copied from there by vector
    stores.

    Attributes:
        function: The kernel's function.
        buffer: The buffer of a matrix unit with non-temporal stores.
    """

    def __init__(self, function: GemmFunction) -> None:
        self.function = function
        self.buffer: Buffer | None = None
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

    def store_part(self, place: ResultTile, value: Value) -> None:
        """Store some columns of rows of C."""
        b, view = self.function.b, self.function.gemm.c
        store_tile_vector(b, view, tile_address(b, view, self.function.c, place), place, value)

    def store_tile(self, block: CacheBlock, tile_of_c: Value, row: Value, column: Value) -> None:
        """Store a register tile of C, which may be column-major."""
        function, b, view = self.function, self.function.b, self.function.gemm.c
        if self.buffer is not None:
            self._store_through(self.buffer, block, tile_of_c, row, column)
            return
        padding = (block.rows.padding, block.columns.padding)
        type_ = tile(view.element, block.rows.size, block.columns.size, padding)
        token = b.typeinfo(tile_of_c, type_, "c")
        if not view.is_row_major:
            type_ = type_.transposed((1, 0))
            token = b.typeinfo(b.transpose(token, (1, 0), type_, "c.columns"), type_, "c")
        self._store(function.at(view, function.c, row, column), token, view.pitch)

    def _store_through(self, buffer: Buffer, block: CacheBlock, sums: Value, row: Value, column: Value) -> None:
        """Store a tile to the buffer, and copy it from there a few rows at a time."""
        function, b, c, columns = self.function, self.function.b, self.function.gemm.c, block.columns
        b.tensor_store(buffer.pointer, b.typeinfo(sums, tile(c.element, block.rows.size, columns.size), "sums"))
        for rows in padded_tiles(block.rows.valid, _ROWS_AT_ONCE, 1):
            part = tile(c.element, rows.size, columns.size, (rows.padding, columns.padding))
            with b.loop(0, rows.count, name="past") as loop:
                at = rows.start_of(b, loop.index)
                copied = b.gep(c.element, buffer.pointer, b.mul(at, columns.size))
                token = b.tensor_load(copied, part, (0, columns.size), "sums")
                self._store(function.at(c, function.c, b.add(row, at), column), token, c.row_stride)

    def _store(self, address: Value, token: Local, pitch: int) -> None:
        b = self.function.b
        if self._aligned is None:
            b.tensor_store(address, token, (0, pitch))
            return
        past = b.new_block("past", b.block)
        usual = b.new_block("usual", past)
        stored = b.new_block("stored", usual)
        b.branch_if(self._aligned, past, usual)
        for block, mark in ((past, nontemporal_metadata(b.module)), (usual, "")):
            b.at_end(block)
            b.tensor_store(address, token, (0, pitch), metadata=mark)
            b.branch(stored)
        b.at_end(stored)
