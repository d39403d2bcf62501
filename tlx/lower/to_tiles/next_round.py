"""What the kernel of a product in a loop does for the loop's next round, and where its own result goes.

The bytes that the next round reads are spread evenly over the steps along K of all tiles:

    tile 0                      tile 1                      tile 2
    k = 0   1   2   3 ...       0   1   2   3 ...           0   1   2   3 ...
    A[i + 1] ------------------------------------------------------------->  a line, or a part of one, in each step
    B[i + 1] ------------------------------------------------------------->
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from tlx.ir.builder import Builder
from tlx.ir.metadata import nontemporal
from tlx.ir.module import Block, Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, bytes_of
from tlx.ir.values import Local, Value, const_int
from tlx.lower.to_tiles.batch import fetched_into, leaves_caches
from tlx.lower.to_tiles.blocks import column_ranges, row_ranges
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Target


def streamed(gemm: Gemm, recipe: Recipe, target: Target) -> Recipe:
    """A recipe with what is to be done about memory, for a product in a loop that is worked on in one block."""
    if gemm.batch is None or len(gemm.sums) > 1 or recipe.kc < gemm.k or recipe.mc < gemm.m or recipe.nc < gemm.n:
        return recipe
    past = leaves_caches(gemm.batch, target) and _is_aligned(gemm, recipe) and gemm.is_repeatable
    return replace(recipe, fetch=fetched_into(gemm.batch, target), past_caches=past)


def _is_aligned(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether all registers of C are aligned to their size if the first one is, and a tile fills whole cache lines."""
    element = bytes_of(gemm.c.element)
    size, pitch = recipe.lanes * element, gemm.c.row_stride * element
    steps = gemm.batch.steps[0] if gemm.batch else 0
    widths = [columns.size * element for columns in column_ranges(gemm, recipe)]
    whole = all(width % LINE == 0 for width in widths) or (gemm.c.is_dense and len(widths) == 1 == gemm.n // recipe.nr)
    same = gemm.c.element == recipe.accumulator
    return whole and same and gemm.n % recipe.lanes == pitch % size == steps % size == 0


@dataclass(eq=False)
class NextRound:
    """Emits prefetches, and stores past the caches.

    Attributes:
        b: Where code is emitted.
        pointers: The kernel's: C, A, B, and what is added or an epilogue reads.
        gemm, recipe: What the kernel computes, and how.
    """

    b: TensorBuilder
    pointers: Sequence[Value]
    gemm: Gemm
    recipe: Recipe
    _before: int = 0
    _tile: Value = field(default_factory=lambda: const_int(I64, 0))
    _aligned: Value | None = None

    def __post_init__(self) -> None:
        counts = [sum(r.count for r in ranges(self.gemm, self.recipe)) for ranges in (row_ranges, column_ranges)]
        self._steps = -(-self.gemm.k // self.recipe.kstep)
        self._all_steps = counts[0] * counts[1] * self._steps
        if self.recipe.past_caches:
            b, size = self.b, self.recipe.lanes * bytes_of(self.gemm.c.element)
            behind = b.binary("and", b.cast("ptrtoint", self.pointers[0], I64), const_int(I64, size - 1))
            self._aligned = b.icmp("eq", behind, const_int(I64, 0))

    def enter(self, rows: int, columns: int, ij: tuple[Value, Value]) -> None:
        """A tile begins: row tile i and panel j of so many, behind all tiles before them."""
        b, (i, j) = self.b, ij
        if self.recipe.fetch:
            self._tile = b.add(b.add(b.mul(j, rows), i), self._before)
            self._before += rows * columns

    def fetch(self, step: Value) -> None:
        """Ask for what the tile's step `step` is to ask for."""
        b, batch = self.b, self.gemm.batch
        if not self.recipe.fetch or batch is None:
            return
        number = b.add(b.mul(self._tile, self._steps), step)
        for pointer, distance, size in batch.read:
            part = -(-size // self._all_steps)
            start = b.mul(number, part)
            for line in range(0, part, LINE):
                b.prefetch(self.pointers[pointer], b.add(start, distance + line), self.recipe.fetch)

    def store(self, address: Value, token: Local, pitch: int) -> None:
        """Store a tile of C, past the caches where that is asked for and C is aligned."""
        b = self.b
        if self._aligned is None:
            b.tensor_store(address, token, (0, pitch))
            return
        past = b.new_block("past", b.block)
        usual = b.new_block("usual", past)
        stored = b.new_block("stored", usual)
        b.branch_if(self._aligned, past, usual)
        for block, mark in ((past, nontemporal(b.module)), (usual, "")):
            b.at_end(block)
            b.tensor_store(address, token, (0, pitch), metadata=mark)
            b.branch(stored)
        b.at_end(stored)


def fence_behind(module: Module, nests: Collection[Function], kernels: Collection[str]) -> None:
    """Have a fence behind all rounds of the loops around kernels that store past the caches.

    Args:
        module: Where they are.
        nests: Functions that are such a loop.
        kernels: Names of the kernels; where they are called outside of nests, a fence follows each call.
    """
    for function in module.functions if kernels else ():
        for block in function.blocks:
            calls = [index for index, i in enumerate(block.instructions) if i.callee in kernels]
            if calls and function in nests:
                _fence(module, function, function.blocks[-1], 0)
                break
            for index in reversed(calls):
                _fence(module, function, block, index + 1)


def _fence(module: Module, function: Function, block: Block, index: int) -> None:
    b = Builder(module, function, block)
    b.index = index
    b.fence()
