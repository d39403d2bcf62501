"""The K loop of a register tile: the sum over K of one or several terms.

for each term of the sum, for k: acc += A[tile, k] @ B[k, panel]

A short loop is unrolled. A loop whose tile prefetches for the next tiles is split into parts, one for each prefetch.

The terms may be interleaved, so that each step covers one position of K in all of them. A 3x3 convolution has nine
terms, with the filters copied to a matrix of K x 9 N:

    for k                                    B[k]    b[0] b[1] ... b[8]      N columns each, adjacent
      for each term: acc += a[k] @ b[k]

B is read sequentially. An unrolled step has as many multiply-adds as nine steps of one product. Overlapping windows
share elements of A, which has to be hidden from LLVM: it would keep the shared elements in registers that the sums
need, and spill the sums of a tile of 6x64 floats. So terms that share elements get opaque addresses of A:

    x, 6 rows       a[0] 0 1 2 3 4 5       a[3], a[6]: other lines, which share no element with a[0]
                    a[1]   1 2 3 4 5 6
                    a[2]     2 3 4 5 6 7
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int
from tlx.lower.cost import needed_registers
from tlx.lower.to_tiles.emit.gemm.function import CacheBlock, GemmFunction, SumTerms
from tlx.lower.to_tiles.emit.gemm.operands import Operands
from tlx.lower.to_tiles.emit.tiles import tile
from tlx.lower.to_tiles.pack.panels import load_vnni
from tlx.lower.to_tiles.prefetch import Prefetcher
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.select.blocking import k_unroll

_ROWS_AHEAD: Final = 3
"""How many steps before its multiplication a row of B is converted."""
_MAX_UNROLLED_STEPS: Final = 16
_MAX_UNROLLED_PRODUCTS: Final = 256
"""Steps, and multiply-adds, up to which a sum is unrolled."""
_LOAD_REGISTERS: Final = 2
"""Registers that LLVM needs to load operands of later steps early."""


class KLoop:
    """Emits the sum over K of a register tile on vectors.

    Attributes:
        function: The kernel's function.
        operands: Loads the operands.
        prefetcher: Emits prefetches among the steps.
    """

    def __init__(self, function: GemmFunction, operands: Operands, prefetcher: Prefetcher) -> None:
        self.function, self.operands, self.prefetcher = function, operands, prefetcher
        self.b, self.gemm, self.recipe, self.target = function.b, function.gemm, function.recipe, function.target

    def _registers(self, block: CacheBlock) -> tuple[int, int]:
        """Rows of the tile, and registers of a row."""
        return block.rows.size, -(-block.columns.size // self.recipe.tile.lanes)

    def total(self, block: CacheBlock, start: Value, bases: tuple[Value, Value]) -> Value:
        """`start` plus all terms of the sum, from the addresses of the first term's operands."""
        if self.operands.interleaves_terms:
            return self._total_interleaved(block, start, bases)
        with self.operands.terms.loop([start]) as term:
            places = self.operands.term_addresses(block, term.index, *bases)
            term.next(self._add_product(block, term.carried[0], *places))
        return term.results[0]

    def _total_interleaved(self, block: CacheBlock, start: Value, bases: tuple[Value, Value]) -> Value:
        """The same for interleaved terms, unrolled if enough registers are free for LLVM to load operands early.

        With nine terms, a tile of 6x16 floats in 16 registers would have six spills; one of 6x64 in 32 has none.
        """

        def add(sums: Value, bases: tuple[Value, Value]) -> Value:
            return self._add_step(block, sums, bases, const_int(I64, 0))

        rows, vectors = self._registers(block)
        is_roomy = needed_registers(rows, vectors) + _LOAD_REGISTERS <= self.target.registers
        sums = InterleavedSums(self.b, self.gemm, self.operands.terms, rows, add)
        return sums.total(start, bases, block.k_pass.size, unrolled=is_roomy)

    def _add_product(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """`start + A[tile, :] @ B[:, panel]`."""
        steps = -(-block.k_pass.size // self.recipe.tile.kstep)
        is_short = self._is_short(block, steps)
        depth = k_unroll(self.gemm, self.recipe, self.target, self._registers(block), unrolled=is_short)
        looped = 0 if is_short else steps // depth * depth
        if is_short and self.gemm.batch is not None:
            a = self.operands.in_a_register(block, a)
        done = 0
        pieces = block.rows.size * self.prefetcher.pieces
        if self.recipe.prefetch.operands and looped >= pieces * depth:
            each = looped // pieces // depth * depth
            start, done = self._add_parts(block, start, (a, rhs), each, depth), each * pieces
        if looped > done:
            with self.b.loop(done, looped, depth, carry=[start], name="k") as loop:
                loop.next(self._add_steps(block, loop.carried[0], (a, rhs), loop.index, depth))
            start = loop.results[0]
        if is_short and self.operands.widens_b:
            return self._add_ahead(block, start, (a, rhs), steps)
        for number in range(looped, steps, depth):
            start = self._add_steps(block, start, (a, rhs), const_int(I64, number), min(depth, steps - number))
        return start

    def _add_ahead(self, block: CacheBlock, start: Value, bases: tuple[Value, Value], steps: int) -> Value:
        """The sum over all steps, unrolled, with each row of B converted some steps before it is multiplied.

        Otherwise the scheduler fills up with multiply-adds that wait for one row before it reaches the next row:
        16x16x16 half takes 175 cycles, 167 with rows ahead (Emerald Rapids); 198 and 177 with two threads on a core.
        """
        rows, vectors = self._registers(block)
        free = self.target.registers - needed_registers(rows, vectors)
        ahead = min(_ROWS_AHEAD, free // vectors)
        rows_of_b = [self.operands.widened_b(block, bases[1], const_int(I64, n)) for n in range(min(ahead, steps))]
        for number in range(steps):
            if number + ahead < steps:
                rows_of_b.append(self.operands.widened_b(block, bases[1], const_int(I64, number + ahead)))
            start = self._add_step(block, start, bases, const_int(I64, number), rows_of_b[number])
        return start

    def _add_parts(self, block: CacheBlock, start: Value, bases: tuple[Value, Value], each: int, depth: int) -> Value:
        """The sum over K in as many parts as the tile has rows, each of several pieces of `each` steps.

        Each part, and each piece, prefetches a row for later tiles.
        """
        b, pieces = self.b, self.prefetcher.pieces
        with b.loop(0, block.rows.size, carry=[start], name="part") as part:
            begin = b.mul(part.index, pieces * each)
            self.prefetcher.begin_part(part.index, begin, pieces * each)
            with b.loop(0, pieces, carry=[part.carried[0]], name="piece") as piece:
                first = b.add(begin, b.mul(piece.index, each))
                self.prefetcher.begin_piece(b.add(b.mul(part.index, pieces), piece.index), first, each)
                with b.loop(
                    first, b.add(first, each), depth, carry=[piece.carried[0]], name="k", nonempty=True
                ) as loop:
                    loop.next(self._add_steps(block, loop.carried[0], bases, loop.index, depth))
                piece.next(loop.results[0])
            part.next(piece.results[0])
        self.prefetcher.end_parts()
        return part.results[0]

    def _is_short(self, block: CacheBlock, steps: int) -> bool:
        """Whether a sum is short enough to unroll, so that out-of-order execution reaches further.

        Half of the registers have to be free, since LLVM hoists loads and would spill. In an unrolled sum, a
        multiply-add can read an element of A as a memory operand at a constant offset: 16x16x16 half takes 198 cycles
        as a loop and 180 unrolled; 270 and 208 with two threads on a core.

        If rows of A share elements, LLVM loads each of them once, and spills what the registers do not hold: eight
        convolutions of 64x64, 3 channels to 16, 5x5 with stride 2, channels last, take 269 us unrolled, 160 as a loop.
        """
        rows, vectors = self._registers(block)
        sums = rows * vectors
        is_short = steps <= _MAX_UNROLLED_STEPS and steps * sums <= _MAX_UNROLLED_PRODUCTS
        fits = 2 * (sums + vectors) <= self.target.registers + 2
        return (
            is_short
            and fits
            and not self._rows_overlap(block)
            and self.recipe.mma.unit != "matrix"
            and not self.recipe.prefetch.b_steps
        )

    def _rows_overlap(self, block: CacheBlock) -> bool:
        """Whether rows of A share elements, which LLVM would keep in registers that the sums need."""
        return not self.recipe.packing.a and 0 < self.gemm.a.row_stride < block.k_pass.size * self.gemm.a.col_stride

    def _add_step(
        self, block: CacheBlock, sums: Value, bases: tuple[Value, Value], number: Value, row: Value | None = None
    ) -> Value:
        """The sums after one more step of K, from the addresses of the operands; `row`: the loaded row of B, if any."""
        b, recipe = self.b, self.recipe
        k = b.mul(number, recipe.tile.kstep)
        missing = 0 if recipe.packing.b else block.columns.padding
        acc_type = tile(recipe.mma.accumulator, block.rows.size, block.columns.size, (0, missing))
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs_tile = self.operands.load_a(block, bases[0], k)
        rhs_tile = row or self.operands.load_b(block, bases[1], k)
        following = b.mma(recipe.mma.name, acc, lhs_tile, rhs_tile, acc_type)
        if recipe.prefetch.b_steps:
            self.operands.prefetch_b(block, bases[1], k)
        self.prefetcher.step(number)
        return following

    def _add_steps(
        self, block: CacheBlock, sums: Value, bases: tuple[Value, Value], number: Value, depth: int
    ) -> Value:
        """The sums after `depth` steps of K, several of which are one operation on row-major operands."""
        if depth == 1:
            return self._add_step(block, sums, bases, number)
        b, recipe, gemm = self.b, self.recipe, self.gemm
        rows, columns = block.rows.size, block.columns.size
        padding = (0, 0 if recipe.packing.b else block.columns.padding)
        a_stride = self.operands.packing_a.depth(block.k_pass.size) if recipe.packing.a else gemm.a.row_stride
        b_stride = columns if recipe.packing.b else gemm.b.row_stride
        k, positions = b.mul(number, recipe.tile.kstep), depth * recipe.tile.kstep
        acc_type = tile(recipe.mma.accumulator, rows, columns, padding)
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs = b.tensor_load(
            self.operands.a_at(block, bases[0], k),
            tile(recipe.mma.operand_a, rows, positions),
            (0, a_stride),
            "a",
        )
        address = b.gep(recipe.mma.operand_b, bases[1], b.mul(k, b_stride))
        if recipe.mma.width == 1:
            rhs = b.tensor_load(address, tile(recipe.mma.operand_b, positions, columns, padding), (0, b_stride), "b")
        else:
            rhs = load_vnni(b, recipe.mma.operand_b, address, (positions, columns, recipe.mma.width))
        following = b.mma(recipe.mma.name, acc, lhs, rhs, acc_type)
        if recipe.prefetch.b_steps:
            self.operands.prefetch_b(block, bases[1], k, depth)
        for at in range(depth if recipe.prefetch.locality else 1):
            self.prefetcher.step(b.add(number, at))
        return following


Add = Callable[[Value, tuple[Value, Value]], Value]
"""A tile's sums and the addresses of a term's operands at a position of K -> the sums after that step."""


@dataclass(frozen=True)
class InterleavedSums:
    """Emits the sum over K of interleaved terms.

    Attributes:
        b: The builder.
        gemm: The product, with unpacked operands.
        terms: The terms of the sum.
        rows: Rows of the tile.
        add: Emits a step of one term.
    """

    b: TensorBuilder
    gemm: Gemm
    terms: SumTerms
    rows: int
    add: Add

    def total(self, start: Value, operands: tuple[Value, Value], depth: int, *, unrolled: bool) -> Value:
        """The sums of all terms.

        Args:
            start: Initial sums.
            operands: Addresses of the first term's operands.
            depth: Positions of K.
            unrolled: Whether the terms of a step are unrolled; else they are a loop.
        """
        b, gemm = self.b, self.gemm
        a, rhs = operands
        starts = self._starts(a) if unrolled else {}
        with b.loop(0, depth, carry=[start], name="k") as loop:
            along = b.mul(loop.index, gemm.a.col_stride)
            row = b.gep(gemm.b.element, rhs, b.mul(loop.index, gemm.b.row_stride))
            if unrolled:
                loop.next(self._unrolled(loop.carried[0], starts, along, row))
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

    def _unrolled(self, total: Value, starts: dict[int, tuple[Value, int]], along: Value, row: Value) -> Value:
        b, gemm = self.b, self.gemm
        for term, (_, of_b) in enumerate(gemm.term_offsets):
            start, offset = starts[term]
            here = b.gep(gemm.a.element, b.gep(gemm.a.element, start, along), offset)
            total = self.add(total, (here, b.gep(gemm.b.element, row, of_b)))
        return total

    def _starts(self, a: Value) -> dict[int, tuple[Value, int]]:
        """For each term an address of A, shared by terms without common elements, and the offset from it."""
        starts: dict[int, tuple[Value, int]] = {}
        for group in conflict_free_groups(self.gemm, self.rows):
            first = self.gemm.term_offsets[group[0]][0]
            start = self.b.opaque_address(self.b.gep(self.gemm.a.element, a, first), "a.at")
            starts |= {term: (start, self.gemm.term_offsets[term][0] - first) for term in group}
        return starts


def conflict_free_groups(gemm: Gemm, rows: int) -> list[list[int]]:
    """Groups of terms, no two of which share an element of a column of A in tiles of `rows` rows."""
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
