"""The loop over K of a register tile: one product, or several of a sum, one after the other or interleaved.

What a register tile of a matrix product sums over K: one product, or several of a sum.

for each product of the sum, for k: acc += A[tile, k] @ B[k, panel]

The loop over K is written out where the sum is short, and cut into parts where the tile asks for what others need.

A register tile's sums over products that take turns: each step goes over a position of K in all of them.

A convolution's nine positions in the kernel, filters copied as a matrix of K x 9 N:

    for k                                    B[k]    b[0] b[1] ... b[8]      N columns each, next to each other
      for each product: acc += a[k] @ b[k]

B is read end to end. Written out, a step has as many multiply-adds as nine steps of one product, and windows that
overlap have elements of A in common. LLVM is not to see that, else it keeps them in registers that the sums need: 6x64
floats would be spilled. So products with common elements have addresses of A that nothing is known of:

    x, 6 rows       a[0] 0 1 2 3 4 5       a[3], a[6]: other lines, which have no element in common with a[0]
                    a[1]   1 2 3 4 5 6
                    a[2]     2 3 4 5 6 7
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.emit.gemm.operands import CacheBlock, Operands
from tlx.lower.to_tiles.emit.gemm.sum_terms import SumTerms
from tlx.lower.to_tiles.emit.kernel import tile
from tlx.lower.to_tiles.parallel.tile_range import arguments_and_tile_range
from tlx.lower.to_tiles.prefetch.streams import Prefetcher
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.blocking import k_unroll
from tlx.lower.to_tiles.select.knob_constraints import needed_registers
from tlx.lower.to_tiles.select.recipe import Recipe
from tlx.target.target import Target

_ROWS_AHEAD: Final = 3
"""Rows of B that are converted before they are multiplied."""
_MOST_STEPS: Final = 16
_MOST_PRODUCTS: Final = 256
"""Multiply-adds, and steps, up to which a sum is written out."""
_ROOM: Final = 2
"""Registers that LLVM needs where it may load operands of the next steps."""


class KLoop(Operands):
    """Emits the sum over K of a register tile.

    Attributes:
        prefetcher: What is prefetched meanwhile.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        self.prefetcher = Prefetcher(b, arguments_and_tile_range(b.function)[0], gemm, recipe)

    def _registers(self, block: CacheBlock) -> tuple[int, int]:
        """Rows of the tile, and registers of a row."""
        return block.rows.size, -(-block.columns.size // self.recipe.tile.lanes)

    def total(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """`start` and all products of the sum, given where the first one's operands are."""
        if self.takes_turns:
            return self._total_in_turns(block, start, a, rhs)
        with self.terms.loop([start]) as term:
            places = self.term_addresses(block, term.index, a, rhs)
            term.next(self._add_product(block, term.carried[0], *places))
        return term.results[0]

    def _total_in_turns(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """The same where the products take turns, written out where LLVM has room to load early.

        6x16 floats in 16 registers would be spilled six times in nine products, 6x64 in 32 are not.
        """

        def add(sums: Value, operands: tuple[Value, Value]) -> Value:
            return self._add_step(block, sums, operands, const_int(I64, 0))

        rows, vectors = self._registers(block)
        is_roomy = needed_registers(rows, vectors) + _ROOM <= self.target.registers
        turns = InterleavedSums(self.b, self.gemm, self.terms, rows, add)
        return turns.total(start, (a, rhs), block.part.size, written_out=is_roomy)

    def _add_product(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """`start + A[tile, :] @ B[:, panel]`."""
        steps = -(-block.part.size // self.recipe.tile.kstep)
        is_short = self._is_short(block, steps)
        depth = k_unroll(self.gemm, self.recipe, self.target, self._registers(block), written_out=is_short)
        looped = 0 if is_short else steps // depth * depth
        if is_short and self.gemm.batch is not None:
            a = self.plain(block, a)
        done = 0
        pieces = block.rows.size * self.prefetcher.pieces
        if self.recipe.prefetch.operands and looped >= pieces * depth:
            each = looped // pieces // depth * depth
            start, done = self._add_parts(block, start, (a, rhs), each, depth), each * pieces
        if looped > done:
            with self.b.loop(done, looped, depth, carry=[start], name="k") as loop:
                loop.next(self._add_steps(block, loop.carried[0], (a, rhs), loop.index, depth))
            start = loop.results[0]
        if is_short and self.widens_b:
            return self._add_ahead(block, start, (a, rhs), steps)
        for number in range(looped, steps, depth):
            start = self._add_steps(block, start, (a, rhs), const_int(I64, number), min(depth, steps - number))
        return start

    def _add_ahead(self, block: CacheBlock, start: Value, operands: tuple[Value, Value], steps: int) -> Value:
        """The sums after all steps, written out, where B is converted as it is read: each row some steps ahead.

        Else a machine's scheduler fills up with multiply-adds that all wait for a row, and does not see the next one:
        16x16x16 half takes 175 cycles so, 167 with rows ahead (Emerald Rapids), and 198, 177 where two threads share
        a core.
        """
        rows, vectors = self._registers(block)
        free = self.target.registers - needed_registers(rows, vectors)
        ahead = min(_ROWS_AHEAD, free // vectors)
        read = [self.widened_b(block, operands[1], const_int(I64, number)) for number in range(min(ahead, steps))]
        for number in range(steps):
            if number + ahead < steps:
                read.append(self.widened_b(block, operands[1], const_int(I64, number + ahead)))
            start = self._add_step(block, start, operands, const_int(I64, number), read[number])
        return start

    def _add_parts(
        self, block: CacheBlock, start: Value, operands: tuple[Value, Value], each: int, depth: int
    ) -> Value:
        """The sums after a part of K for each row of the tile, whose pieces are `each` steps long.

        With a part, the tile asks for a row, and with a piece of it for another one.
        """
        b, pieces = self.b, self.prefetcher.pieces
        with b.loop(0, block.rows.size, carry=[start], name="part") as part:
            begin = b.mul(part.index, pieces * each)
            self.prefetcher.begin_part(part.index, begin, pieces * each)
            with b.loop(0, pieces, carry=[part.carried[0]], name="piece") as piece:
                first = b.add(begin, b.mul(piece.index, each))
                self.prefetcher.begin_piece(b.add(b.mul(part.index, pieces), piece.index), first, each)
                with b.loop(first, b.add(first, each), depth, carry=[piece.carried[0]], name="k", runs=True) as loop:
                    loop.next(self._add_steps(block, loop.carried[0], operands, loop.index, depth))
                piece.next(loop.results[0])
            part.next(piece.results[0])
        self.prefetcher.end_parts()
        return part.results[0]

    def _is_short(self, block: CacheBlock, steps: int) -> bool:
        """Whether a sum is too short for a loop: fewer instructions let a machine look further ahead.

        Half of the registers have to be free: LLVM loads early what it can, and would spill. An element of A without an
        index is read by the multiply-add itself, as one instruction: 16x16x16 half takes 198 cycles with a loop, 180
        without, 270 and 208 where two threads share a core.
        """
        rows, vectors = self._registers(block)
        sums = rows * vectors
        is_short = steps <= _MOST_STEPS and steps * sums <= _MOST_PRODUCTS
        fits = 2 * (sums + vectors) <= self.target.registers + 2
        return is_short and fits and self.recipe.mma.unit != "matrix" and not self.recipe.prefetch.b_steps

    def _add_step(
        self, block: CacheBlock, sums: Value, operands: tuple[Value, Value], number: Value, row: Value | None = None
    ) -> Value:
        """The sums after one more step of K, for which a row of B may be there already."""
        b, recipe = self.b, self.recipe
        k = b.mul(number, recipe.tile.kstep)
        missing = 0 if recipe.packing.b else block.columns.padding
        acc_type = tile(recipe.mma.accumulator, block.rows.size, block.columns.size, (0, missing))
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs_tile = self.load_a(block, operands[0], k)
        rhs_tile = row or self.load_b(block, operands[1], k)
        following = b.mma(recipe.mma.name, acc, lhs_tile, rhs_tile, acc_type)
        if recipe.prefetch.b_steps:
            self.prefetch_b(block, operands[1], k)
        self.prefetcher.step(number)
        return following

    def _add_steps(
        self, block: CacheBlock, sums: Value, operands: tuple[Value, Value], number: Value, depth: int
    ) -> Value:
        """The sums after some more positions of K; several at a time where both operands lie in rows."""
        if depth == 1:
            return self._add_step(block, sums, operands, number)
        b, recipe, gemm = self.b, self.recipe, self.gemm
        rows, columns = block.rows.size, block.columns.size
        padding = (0, 0 if recipe.packing.b else block.columns.padding)
        a_stride = self.packing_a.depth(block.part.size) if recipe.packing.a else gemm.a.row_stride
        b_stride = columns if recipe.packing.b else gemm.b.row_stride
        of_b = tile(recipe.mma.operand_b, depth, columns, padding)
        acc_type = tile(recipe.mma.accumulator, rows, columns, padding)
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs = b.tensor_load(
            self.a_at(block, operands[0], number),
            tile(recipe.mma.operand_a, rows, depth),
            (0, a_stride),
            "a",
        )
        place = b.gep(recipe.mma.operand_b, operands[1], b.mul(number, b_stride))
        rhs = b.tensor_load(place, of_b, (0, b_stride), "b")
        following = b.mma(recipe.mma.name, acc, lhs, rhs, acc_type)
        for at in range(depth if recipe.prefetch.locality else 1):
            self.prefetcher.step(b.add(number, at))
        return following


Add = Callable[[Value, tuple[Value, Value]], Value]
"""From a tile's sums and where a product's operands are at a position of K to the sums with that added."""


@dataclass(frozen=True)
class InterleavedSums:
    """Emits the sums.

    Attributes:
        b: Where.
        gemm: The product, of operands that are read as they lie.
        terms: The products of the sum.
        rows: Rows of the tile.
        add: What a step of one product is.
    """

    b: TensorBuilder
    gemm: Gemm
    terms: SumTerms
    rows: int
    add: Add

    def total(self, start: Value, operands: tuple[Value, Value], depth: int, *, written_out: bool) -> Value:
        """The sums of all products.

        Args:
            start: What they start from.
            operands: Where the first product's are.
            depth: Positions of K.
            written_out: Whether a step's products are, else they are a loop.
        """
        b, gemm = self.b, self.gemm
        a, rhs = operands
        starts = self._starts(a) if written_out else {}
        with b.loop(0, depth, carry=[start], name="k") as loop:
            along = b.mul(loop.index, gemm.a.col_stride)
            row = b.gep(gemm.b.element, rhs, b.mul(loop.index, gemm.b.row_stride))
            if written_out:
                loop.next(self._written_out(loop.carried[0], starts, along, row))
            else:
                loop.next(self._in_loop(loop.carried[0], b.gep(gemm.a.element, a, along), row))
        return loop.results[0]

    def _in_loop(self, total: Value, a: Value, row: Value) -> Value:
        b, gemm = self.b, self.gemm
        with self.terms.loop([total]) as term:
            here = b.gep(gemm.a.element, a, self.terms.offset(0, term.index))
            there = b.gep(gemm.b.element, row, self.terms.offset(1, term.index))
            term.next(self.add(term.carried[0], (here, there)))
        return term.results[0]

    def _written_out(self, total: Value, starts: dict[int, tuple[Value, int]], along: Value, row: Value) -> Value:
        b, gemm = self.b, self.gemm
        for term, (_, behind) in enumerate(gemm.term_offsets):
            start, offset = starts[term]
            here = b.gep(gemm.a.element, b.gep(gemm.a.element, start, along), offset)
            total = self.add(total, (here, b.gep(gemm.b.element, row, behind)))
        return total

    def _starts(self, a: Value) -> dict[int, tuple[Value, int]]:
        """For each product an address of A, the same for products without common elements, and elements from there."""
        found: dict[int, tuple[Value, int]] = {}
        for group in conflict_free_groups(self.gemm, self.rows):
            first = self.gemm.term_offsets[group[0]][0]
            start = self.b.plain(self.b.gep(self.gemm.a.element, a, first), "a.at")
            found |= {term: (start, self.gemm.term_offsets[term][0] - first) for term in group}
        return found


def conflict_free_groups(gemm: Gemm, rows: int) -> list[list[int]]:
    """The products in groups in which no two have an element of a column of A in common, in tiles of so many rows."""
    groups: list[list[int]] = []
    pitch = max(1, gemm.a.row_stride)
    for term, (offset, _) in enumerate(gemm.term_offsets):
        steps = [[offset - gemm.term_offsets[other][0] for other in group] for group in groups]
        fits = [all(step % pitch or abs(step) >= rows * pitch for step in group) for group in steps]
        if any(fits):
            groups[fits.index(True)].append(term)
        else:
            groups.append([term])
    return groups
