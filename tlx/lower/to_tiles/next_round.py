"""What the kernel of a product in a loop does for the loop's next rounds, and where its own result goes.

The bytes that the next round, or one further on, reads are spread evenly over the steps along K of all tiles:

    tile 0                      tile 1                      tile 2
    k = 0   1   2   3 ...       0   1   2   3 ...           0   1   2   3 ...
    A[i + 1] ------------------------------------------------------------->  a line, or a part of one, in each step
    B[i + 1] ------------------------------------------------------------->

Few rows that meet a B from behind the second cache ask for B's rows of the next pass over K in the same way: a panel
reads a few lines of each row, a page each, but what is asked for lies end to end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from tlx.ir.builder import Builder
from tlx.ir.metadata import nontemporal
from tlx.ir.module import Block, Function, Module
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import Local, Value, const_int
from tlx.lower.to_tiles.batch import SECOND, fetched_into, leaves_caches, rounds_ahead
from tlx.lower.to_tiles.blocks import column_ranges, row_ranges
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.target import Target


def streamed(gemm: Gemm, recipe: Recipe, target: Target) -> Recipe:
    """A recipe with what is to be done about memory, for a product in one block: in a loop, or in passes over K."""
    if gemm.batch is None:
        return replace(recipe, fetch=SECOND) if _asks_for_next_pass(gemm, recipe, target) else recipe
    blocked = recipe.unit != "matrix" and (recipe.kc < gemm.k or recipe.mc < gemm.m)
    if len(gemm.sums) > 1 or blocked or recipe.nc < gemm.n:
        return recipe
    past = leaves_caches(gemm.batch, target) and _is_aligned(gemm, recipe) and gemm.is_repeatable
    rounds = 1 if recipe.unit == "matrix" else rounds_ahead(gemm.batch, target)
    fetch = fetched_into(gemm.batch, target)
    return replace(recipe, fetch=fetch, rounds=rounds, past_caches=past)


def _asks_for_next_pass(gemm: Gemm, recipe: Recipe, target: Target) -> bool:
    """Whether few rows read B as it lies, from behind the second cache, and that cache holds two passes of it."""
    one_block = recipe.mc >= gemm.m and all(recipe.nc >= c.count * c.size for c in column_ranges(gemm, recipe))
    as_it_lies = gemm.b.is_dense and not recipe.pack_b and recipe.kc < gemm.k
    size = bytes_of(gemm.b.element)
    near, far = 2 * recipe.kc * gemm.n * size, gemm.k * gemm.n * size
    return one_block and as_it_lies and near <= target.caches.l2 < far


def _is_aligned(gemm: Gemm, recipe: Recipe) -> bool:
    """Whether all registers of C are aligned to their size if the first one is, and a tile fills whole cache lines."""
    element = bytes_of(gemm.c.element)
    size, pitch = recipe.lanes * element, gemm.c.row_stride * element
    steps = gemm.batch.steps[0] if gemm.batch else 0
    widths = [columns.size * element for columns in column_ranges(gemm, recipe)]
    whole = all(width % LINE == 0 for width in widths) or (gemm.c.is_dense and len(widths) == 1 == gemm.n // recipe.nr)
    same = gemm.c.element == recipe.accumulator
    return whole and same and gemm.c.is_row_major and gemm.n % recipe.lanes == pitch % size == steps % size == 0


@dataclass(eq=False)
class NextRound:
    """Emits prefetches, and stores past the caches.

    Attributes:
        b: Where code is emitted.
        pointers: The kernel's: C, A, B, and what is added or an epilogue reads.
        gemm, recipe: What the kernel computes, and how.
        reads: What is asked for, as addresses that others lie so many bytes behind, and how many of those.
    """

    b: TensorBuilder
    pointers: Sequence[Value]
    gemm: Gemm
    recipe: Recipe
    reads: list[tuple[Value, int, int]] = field(default_factory=list[tuple[Value, int, int]])
    _before: int = 0
    _tile: Value = field(default_factory=lambda: const_int(I64, 0))
    _aligned: Value | None = None

    def __post_init__(self) -> None:
        counts = [sum(r.count for r in ranges(self.gemm, self.recipe)) for ranges in (row_ranges, column_ranges)]
        self._steps = -(-min(self.gemm.k, self.recipe.kc) // self.recipe.kstep)
        self._all_steps = counts[0] * counts[1] * self._steps
        if self.gemm.batch is not None and self.recipe.fetch:
            rounds = self.recipe.rounds
            self.reads = [(self.pointers[number], rounds * step, size) for number, step, size in self.gemm.batch.read]
        if self.recipe.past_caches:
            b, size = self.b, self.recipe.lanes * bytes_of(self.gemm.c.element)
            behind = b.binary("and", b.cast("ptrtoint", self.pointers[0], I64), const_int(I64, size - 1))
            self._aligned = b.icmp("eq", behind, const_int(I64, 0))

    def begin(self, base: Value, start: Value, size: int) -> None:
        """A pass over K begins, with so many rows of B from `start` on: those behind them are what it asks for.

        The last one asks for its own, which are near: there are none behind them.
        """
        if not self.recipe.fetch or self.gemm.batch is not None:
            return
        b, view = self.b, self.gemm.b
        last, pitch = self.gemm.k - self.recipe.kc, view.row_stride * bytes_of(view.element)
        following = b.umin(b.add(start, size), last)
        self.reads = [(b.gep(I8, b.retype(base, I8), b.mul(following, pitch)), 0, self.recipe.kc * pitch)]
        self._before = 0

    def enter(self, rows: int, columns: int, ij: tuple[Value, Value]) -> None:
        """A tile begins: row tile i and panel j of so many, behind all tiles before them.

        With no columns it is one of them that is emitted on its own, before the others.
        """
        b, (i, j) = self.b, ij
        if self.recipe.fetch:
            self._tile = b.add(b.add(b.mul(j, rows), i), self._before)
            self._before += rows * columns

    def fetch(self, step: Value) -> None:
        """Ask for what the tile's step `step` is to ask for."""
        if not self.reads:
            return
        b = self.b
        number = b.add(b.mul(self._tile, self._steps), step)
        for pointer, distance, size in self.reads:
            part = -(-size // self._all_steps)
            start = b.mul(number, part)
            for line in range(0, part, LINE):
                b.prefetch(pointer, b.add(start, distance + line), self.recipe.fetch)

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
