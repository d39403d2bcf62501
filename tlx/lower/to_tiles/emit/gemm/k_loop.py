"""The K loop of a register tile: addresses and loads of the operands, and the sum over K of one or several terms.

for each term of the sum, for k: acc += A[tile, k] @ B[k, panel]

A short loop is unrolled. A loop whose tile prefetches for the next tiles is split into parts, one for each prefetch.

The terms may be interleaved, so that each step covers one position of K in all of them. A 3x3 convolution has nine
terms, with the filters copied to a matrix of K x 9 N:

    for k                                    B[k]    b[0] b[1] ... b[8]      N columns each, adjacent
      for each term: acc += a[k] @ b[k]

B is read sequentially. An unrolled step has as many multiply-adds as nine steps of one product, and overlapping windows
share elements of A. LLVM must not see that: it would keep the elements in registers that the sums need, and spill 6x64
floats. So terms that share elements get opaque addresses of A:

    x, 6 rows       a[0] 0 1 2 3 4 5       a[3], a[6]: other lines, which share no element with a[0]
                    a[1]   1 2 3 4 5 6
                    a[2]     2 3 4 5 6 7
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I8, I64, bytes_of
from tlx.ir.values import ConstInt, Value, const_int
from tlx.lower.to_tiles.emit.kernel import SumTerms, convert_tile, tile
from tlx.lower.to_tiles.pack.panels import PanelLayout, PanelPacker, load_vnni
from tlx.lower.to_tiles.pack.prepacked import PackedPanels
from tlx.lower.to_tiles.parallel.tile_range import arguments_and_tile_range
from tlx.lower.to_tiles.prefetch.streams import Prefetcher, PrefetchStream
from tlx.lower.to_tiles.problem.expression import MatrixView
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.blocking import k_unroll
from tlx.lower.to_tiles.select.knob_constraints import needed_registers
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe
from tlx.target.target import Target

_PAYS: Final = 2
"""Multiply-adds above which an address register is cheaper than an index in each."""


@dataclass(frozen=True, slots=True)
class KPass:
    """A pass over `size` positions of K from `start` on; the first pass starts the sums, later ones add to C."""

    start: Value
    size: int
    first: bool


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """A cache block: a pass over K, some panels from column `column` on, some row tiles from `row` on."""

    part: KPass
    columns: EqualTiles
    column: Value
    panels: Value
    rows: EqualTiles
    row: Value
    tiles: Value


class Operands:
    """Emits addresses and loads of a kernel's operands.

    Attributes:
        b: The builder.
        gemm, recipe, target: The problem, its recipe and its target.
        c, a, b_in: Addresses of the matrices.
        packing_a, packing_b: Layouts of packed operands.
        packer_a, packer_b: Emit the packing.
        terms: The terms of the sum.
        interleaves_terms: Whether the terms are interleaved along K.
        panel_a, panel_b, sums: Packed operands, and sums for corrections, if there are any.
        shared: The panels of B if the kernel is passed B packed.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        self.b = b
        self.gemm = gemm
        self.recipe = recipe
        self.target = target
        self.c, self.a, self.b_in = arguments_and_tile_range(b.function)[0][:3]
        if recipe.packing.b_panel_offset is not None:
            place = b.gep(I8, b.retype(self.b_in, I8), recipe.packing.b_panel_offset)
            self.b_in = b.retype(place, recipe.mma.operand_b if recipe.packing.prepacked_b else gemm.b.element)
        self.packing_a, self.packing_b = PanelLayout.of_a(gemm, recipe), PanelLayout.of_b(gemm, recipe)
        self.packer_a, self.packer_b = PanelPacker(b, self.packing_a), PanelPacker(b, self.packing_b)
        self.terms = SumTerms(b, gemm.term_offsets)
        packed = recipe.packing.a or recipe.packing.b
        self.interleaves_terms = recipe.mma.unit == "fma" and not packed and gemm.is_interleaved
        self.panel_a: Value | None = None
        self.panel_b: Value | None = None
        self.sums: Value | None = None
        self.shared: PackedPanels | None = None
        if recipe.packing.prepacked_b:
            self._take_panels()

    def _take_panels(self) -> None:
        """B comes packed, followed by the sums for corrections."""
        b, recipe = self.b, self.recipe
        self.panel_b = self.b_in
        self.shared = PackedPanels.of(self.gemm, recipe)
        if recipe.mma.correction == "columns":
            behind = b.gep(I8, self.b_in, self.shared.sums_at)
            self.sums = b.retype(behind, recipe.mma.accumulator)

    def term_addresses(self, block: CacheBlock, index: Value, a: Value, rhs: Value) -> tuple[Value, Value]:
        """The addresses of a term's operands, from those of the first term."""
        b, recipe = self.b, self.recipe
        if recipe.packing.a:
            a_offset = b.mul(index, block.rows.size * self.packing_a.depth(block.part.size))
        else:
            a_offset = self.terms.offset(0, index)
        if recipe.packing.b:
            part = self.gemm.k if recipe.packing.prepacked_b else block.part.size
            b_offset = b.mul(index, block.columns.size * self.packing_b.depth(part))
        else:
            b_offset = self.terms.offset(1, index)
        return b.gep(recipe.mma.operand_a, a, a_offset), b.gep(recipe.mma.operand_b, rhs, b_offset)

    def at(self, view: MatrixView, base: Value, row: Value, column: Value) -> Value:
        """Address of an element of a matrix."""
        b = self.b
        return b.gep(view.element, base, b.add(b.mul(row, view.row_stride), b.mul(column, view.col_stride)))

    def a_address(self, block: CacheBlock, i: Value, row: Value) -> Value:
        """Address of row tile `i` of the block, packed or not."""
        if not self.recipe.packing.a:
            return self.at(self.gemm.a, self.a, row, block.part.start)
        if self.recipe.packing.whole_a:
            return self.panel_of_a(block.part, row, const_int(I64, 0))
        return self.panel_of_a(block.part, const_int(I64, 0), self.b.mul(i, block.rows.size))

    @property
    def pitch_of_a(self) -> int:
        """Row stride of A, packed (in the first pass) or not."""
        if not self.recipe.packing.a:
            return self.gemm.a.row_stride
        return self.packing_a.depth(min(self.recipe.blocks.kc, self.gemm.k))

    def rows_of_a(self, part: KPass) -> tuple[Value, int, Value]:
        """Address of A, packed or not, its row stride, and the offset of the pass in a row."""
        if not self.recipe.packing.a:
            return self.a, self.gemm.a.row_stride, part.start
        assert self.panel_a is not None
        return self.panel_a, self.packing_a.depth(part.size), const_int(I64, 0)

    def panel_of_a(self, part: KPass, row: Value, behind: Value) -> Value:
        """Address of the packed row tile `behind` rows after a packed row."""
        b = self.b
        assert self.panel_a is not None
        depth = self.packing_a.depth(part.size) * self.terms.count
        return b.gep(self.recipe.mma.operand_a, self.panel_a, b.mul(b.add(row, behind), depth))

    def b_address(self, block: CacheBlock, j: Value, column: Value) -> Value:
        """Address of panel `j` of the block, packed or not."""
        if not self.recipe.packing.b:
            return self.at(self.gemm.b, self.b_in, block.part.start, column)
        assert self.panel_b is not None
        if self.shared is not None:
            return self.b.gep(self.recipe.mma.operand_b, self.panel_b, self.place_of_panel(self.shared, block, column))
        depth = self.packing_b.depth(block.part.size) * self.terms.count
        return self.b.gep(self.recipe.mma.operand_b, self.panel_b, self.b.mul(j, depth * block.columns.size))

    def place_of_panel(self, shared: PackedPanels, block: CacheBlock, column: Value) -> Value:
        """Elements from the first panel of a packed B to that of a column, at the pass's position of K."""
        b = self.b
        panel = b.mul(shared.place(b, block.columns, column), shared.depth)
        return b.add(panel, b.mul(block.part.start, block.columns.size))

    def load_a(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The tile's rows of A at position `k`."""
        b, recipe, view = self.b, self.recipe, self.gemm.a
        type_ = tile(recipe.mma.operand_a, block.rows.size, recipe.tile.kstep)
        if recipe.packing.a and self.packing_a.by_columns:
            return b.tensor_load(self.a_at(block, base, b.mul(k, block.rows.size)), type_, (0, 1), "a")
        if recipe.packing.a:
            depth = self.packing_a.depth(block.part.size)
            return b.tensor_load(self.a_at(block, base, k), type_, (0, depth), "a")
        return b.tensor_load(self.a_at(block, base, b.mul(k, view.col_stride)), type_, (0, view.row_stride), "a")

    def a_at(self, block: CacheBlock, base: Value, offset: Value) -> Value:
        """Address of elements of A at an offset."""
        address = self.b.gep(self.recipe.mma.operand_a, base, offset)
        return address if isinstance(offset, ConstInt) else self.plain(block, address)

    def plain(self, block: CacheBlock, address: Value) -> Value:
        """An address of A, in a register of its own if each element is read by only one multiply-add."""
        recipe = self.recipe
        once = block.columns.size <= recipe.tile.lanes and block.rows.size > _PAYS and recipe.mma.unit != "matrix"
        return self.b.plain(address, "a.at") if once and self.target.broadcasts else address

    def prefetch_b(self, block: CacheBlock, base: Value, k: Value) -> None:
        """Prefetch the columns of B of some steps later."""
        b, recipe, size = self.b, self.recipe, block.columns.size
        stride, element = size if recipe.packing.b else self.gemm.b.row_stride, bytes_of(recipe.mma.operand_b)
        start = b.gep(recipe.mma.operand_b, base, b.mul(k, stride))
        step = stride // self.terms.count if self.interleaves_terms else stride
        ahead = const_int(I64, recipe.prefetch.b_steps * recipe.tile.kstep * step * element)
        PrefetchStream(start, ahead, size * recipe.tile.kstep * element).emit(b)

    def load_b(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`."""
        b, recipe, size = self.b, self.recipe, block.columns.size
        if not recipe.packing.b:
            address = b.gep(recipe.mma.operand_b, base, b.mul(k, self.gemm.b.row_stride))
            if self.gemm.b.interleave > 1:
                return load_vnni(b, recipe.mma.operand_b, address, (recipe.tile.kstep, size, recipe.mma.width))
            return b.tensor_load(address, tile(recipe.mma.operand_b, 1, size, (0, block.columns.padding)), None, "b")
        address = b.gep(recipe.mma.operand_b, base, b.mul(k, size))
        if recipe.mma.width == 1:
            return b.tensor_load(address, tile(recipe.mma.operand_b, recipe.tile.kstep, size), None, "b")
        return load_vnni(b, recipe.mma.operand_b, address, (recipe.tile.kstep, size, recipe.mma.width))

    @property
    def widens_b(self) -> bool:
        """Whether multiply-adds read an unpacked B of narrower elements."""
        mma = self.recipe.mma
        return mma.unit == "fma" and not self.recipe.packing.b and mma.operand_b != mma.accumulator

    def widened_b(self, block: CacheBlock, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`, converted to the accumulator's type."""
        b, mma, size = self.b, self.recipe.mma, block.columns.size
        token = self.load_b(block, base, k)
        narrow, wide = (tile(t, 1, size, (0, block.columns.padding)) for t in (mma.operand_b, mma.accumulator))
        return b.typeinfo(convert_tile(b, b.tovector(token, narrow, "b.row"), mma.accumulator, "f"), wide, "b.row")


_ROWS_AHEAD: Final = 3
"""Rows of B that are converted ahead of their multiplication."""
_MOST_STEPS: Final = 16
_MOST_PRODUCTS: Final = 256
"""Multiply-adds, and steps, up to which a sum is unrolled."""
_ROOM: Final = 2
"""Registers that LLVM needs to load operands of later steps early."""


class KLoop(Operands):
    """Emits the sum over K of a register tile.

    Attributes:
        prefetcher: Emits prefetches among the steps.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        self.prefetcher = Prefetcher(b, arguments_and_tile_range(b.function)[0], gemm, recipe)

    def _registers(self, block: CacheBlock) -> tuple[int, int]:
        """Rows of the tile, and registers of a row."""
        return block.rows.size, -(-block.columns.size // self.recipe.tile.lanes)

    def total(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """`start` plus all terms of the sum, from the addresses of the first one's operands."""
        if self.interleaves_terms:
            return self._total_interleaved(block, start, a, rhs)
        with self.terms.loop([start]) as term:
            places = self.term_addresses(block, term.index, a, rhs)
            term.next(self._add_product(block, term.carried[0], *places))
        return term.results[0]

    def _total_interleaved(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """The same with interleaved terms, unrolled if LLVM has registers to load early.

        6x16 floats in 16 registers would be spilled six times in nine terms, 6x64 in 32 are not.
        """

        def add(sums: Value, operands: tuple[Value, Value]) -> Value:
            return self._add_step(block, sums, operands, const_int(I64, 0))

        rows, vectors = self._registers(block)
        is_roomy = needed_registers(rows, vectors) + _ROOM <= self.target.registers
        sums = InterleavedSums(self.b, self.gemm, self.terms, rows, add)
        return sums.total(start, (a, rhs), block.part.size, unrolled=is_roomy)

    def _add_product(self, block: CacheBlock, start: Value, a: Value, rhs: Value) -> Value:
        """`start + A[tile, :] @ B[:, panel]`."""
        steps = -(-block.part.size // self.recipe.tile.kstep)
        is_short = self._is_short(block, steps)
        depth = k_unroll(self.gemm, self.recipe, self.target, self._registers(block), unrolled=is_short)
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
        """The sums after all steps, unrolled, with each row of B converted some steps ahead.

        Otherwise the scheduler fills with multiply-adds that wait for one row, and does not reach the next one:
        16x16x16 half takes 175 cycles, 167 with rows ahead (Emerald Rapids); 198 and 177 with two threads on a core.
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
        """The sums after K in one part for each row of the tile, each in pieces of `each` steps.

        The tile prefetches a row with each part, and another one with each piece.
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
        """Whether a sum is short enough to unroll: fewer instructions let out-of-order execution look further ahead.

        Half of the registers have to be free, since LLVM loads early and would spill. A multiply-add can read an
        element of A at a constant offset as a memory operand: 16x16x16 half takes 198 cycles as a loop and 180
        unrolled; 270 and 208 with two threads on a core.
        """
        rows, vectors = self._registers(block)
        sums = rows * vectors
        is_short = steps <= _MOST_STEPS and steps * sums <= _MOST_PRODUCTS
        fits = 2 * (sums + vectors) <= self.target.registers + 2
        return is_short and fits and self.recipe.mma.unit != "matrix" and not self.recipe.prefetch.b_steps

    def _add_step(
        self, block: CacheBlock, sums: Value, operands: tuple[Value, Value], number: Value, row: Value | None = None
    ) -> Value:
        """The sums after one more step of K; its row of B may be loaded already."""
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
        """The sums after one step of K, of several positions where both operands are in rows."""
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
"""A tile's sums and the addresses of a term's operands at a position of K -> the sums after that step."""


@dataclass(frozen=True)
class InterleavedSums:
    """Emits sums over interleaved terms.

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
        for term, (_, behind) in enumerate(gemm.term_offsets):
            start, offset = starts[term]
            here = b.gep(gemm.a.element, b.gep(gemm.a.element, start, along), offset)
            total = self.add(total, (here, b.gep(gemm.b.element, row, behind)))
        return total

    def _starts(self, a: Value) -> dict[int, tuple[Value, int]]:
        """For each term an address of A, shared by terms without common elements, and the offset from it."""
        found: dict[int, tuple[Value, int]] = {}
        for group in conflict_free_groups(self.gemm, self.rows):
            first = self.gemm.term_offsets[group[0]][0]
            start = self.b.plain(self.b.gep(self.gemm.a.element, a, first), "a.at")
            found |= {term: (start, self.gemm.term_offsets[term][0] - first) for term in group}
        return found


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
