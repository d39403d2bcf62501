"""Blockings: which dimensions of a contraction become the matrices of 2-D products, and which become loops."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tlx.ir.types import bytes_of
from tlx.lower.memory.views import StridedDim, load_layout
from tlx.lower.to_2d.contraction.problem import LHS, OUT, RHS, Contraction
from tlx.lower.to_2d.contraction.vnni import VnniRows
from tlx.lower.to_2d.loop_nests import CollapsedDims

MOST_CHAINED: Final = 64
"""Largest number of products that are summed in one tree."""


@dataclass(frozen=True, eq=False)
class Blocking:
    """A blocking of a contraction.

    Attributes:
        contraction: The contraction or its transpose.
        copied: The operands that are copied: LHS, RHS.
        batch, outer_m, outer_n: Loops around the blocks of the result.
        outer_k: Loops around the products that are summed in a block.
        m, n, k: The dimensions of the products.
        quasi_affine: The loop over the quasi-affine dimension, if the contraction has one.
        groups: How rows of a copied right operand are interleaved for a matrix unit; None: they are not.
        padded_columns: Columns of a row of the interleaved copy, padded to whole tiles.
        tile_columns: Columns of a tile if the interleaved copy is stored tile by tile, else 0.
        k_in_memory_order: Whether the copied right operand keeps the order that K's dimensions have in memory.
    """

    contraction: Contraction
    copied: frozenset[int]
    batch: tuple[CollapsedDims, ...]
    outer_m: tuple[CollapsedDims, ...]
    outer_n: tuple[CollapsedDims, ...]
    outer_k: tuple[CollapsedDims, ...]
    m: CollapsedDims
    n: CollapsedDims
    k: CollapsedDims
    quasi_affine: tuple[CollapsedDims, ...] = ()
    groups: VnniRows | None = None
    padded_columns: int = 0
    tile_columns: int = 0
    k_in_memory_order: bool = False

    def order(self, column: int) -> list[CollapsedDims]:
        """An operand's dimensions in the order in which they are read and copied."""
        if column == LHS:
            runs = [*self.batch, *self.outer_m, *self.quasi_affine, *self.outer_k, self.m, self.k]
        else:
            depth = [*self.quasi_affine, *self.outer_k, self.k]
            if self.k_in_memory_order:
                depth.sort(key=lambda run: run.strides[column], reverse=True)
            runs = [*self.batch, *self.outer_n, *depth, self.n]
        return [run for run in runs if run.strides[column] and run.extent > 1]

    @property
    def loops(self) -> list[CollapsedDims]:
        """The loops around blocks: those that step through the larger operand are the outer ones."""
        larger = max((LHS, RHS), key=self.block_bytes)
        inner = [run for run in (*self.outer_m, *self.outer_n) if not run.strides[larger]]
        outer = [run for run in (*self.outer_m, *self.outer_n) if run.strides[larger]]
        return [*self.batch, *outer, *inner]

    def sliced_operand(self, near: int) -> int | None:
        """The operand that is copied slice by slice, so that the copy stays in `near` bytes of cache, or None."""
        larger = max((LHS, RHS), key=self.block_bytes)
        moving = [run for run in (*self.batch, *self.outer_m, *self.outer_n) if run.strides[larger]]
        if larger not in self.copied or self.groups is not None or any(len(run.dims) > 1 for run in moving):
            return None
        size = self.block_bytes(larger)
        return larger if size <= near < size * math.prod(run.extent for run in moving) else None

    @property
    def is_transposed(self) -> bool:
        """Whether the result of a product is stored column by column."""
        return self.n.extent > 1 and self.n.strides[OUT] > 1

    @property
    def sums(self) -> int:
        """Number of products that are summed in each block."""
        return math.prod(run.extent for run in (*self.outer_k, *self.quasi_affine))

    @property
    def blocks(self) -> int:
        """Number of blocks of the result."""
        return math.prod(run.extent for run in (*self.batch, *self.outer_m, *self.outer_n))

    def is_reused(self, column: int) -> bool:
        """Whether a block of an operand is used for several blocks of the result."""
        loops = (*self.batch, *self.outer_m, *self.outer_n)
        return any(run.extent > 1 and not run.strides[column] for run in loops)

    def block_bytes(self, column: int) -> int:
        """Bytes of an operand that a block of the result reads."""
        memory = (self.contraction.lhs, self.contraction.rhs)[column]
        side = (self.m, self.n)[column]
        return self.sums * self.k.extent * side.extent * bytes_of(memory.element)


def block_loaded_as(column: int, rows: CollapsedDims, cols: CollapsedDims) -> tuple[bool, int] | None:
    """How an operand's block is loaded (`load_layout`); None if no 2-D load reads it."""
    return load_layout(StridedDim(rows.extent, rows.strides[column]), StridedDim(cols.extent, cols.strides[column]))
