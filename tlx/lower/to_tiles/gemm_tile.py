"""One register tile of a matrix product: how its sums start, what is added to them, and how they are finished.

acc = 0 | Acc | C                         (+ correction of the xor trick)
for each product of the sum, for k: acc += A[tile, k] @ B[k, panel]
C[tile, panel] = f(acc)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I8, I64, VectorType, bits_of
from tlx.ir.values import ConstInt, Value, const_int, zero
from tlx.lower.to_tiles.blocks import Range, column_ranges, row_ranges
from tlx.lower.to_tiles.combine import Combine
from tlx.lower.to_tiles.depth import positions_at_once
from tlx.lower.to_tiles.epilogue import Epilogue
from tlx.lower.to_tiles.evaluate import Place, address_of, store_vector
from tlx.lower.to_tiles.last_columns import LastColumns
from tlx.lower.to_tiles.map import expression_parameters
from tlx.lower.to_tiles.memory import LINE
from tlx.lower.to_tiles.next_round import NextRound
from tlx.lower.to_tiles.pack import Packing, load_vnni
from tlx.lower.to_tiles.partial import Partial
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.share import arguments_of
from tlx.lower.to_tiles.shared import Panels
from tlx.lower.to_tiles.sums import Sums
from tlx.lower.to_tiles.tiles import convert, tile
from tlx.lower.to_tiles.view import View
from tlx.target import Sign, Target

_FEW: Final = 16
_SHORT: Final = 256
"""Steps and multiply-adds up to which a sum is written out."""
_PAYS: Final = 2
"""Multiply-adds above which an address of their own is less than an index in each."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A part of K: from `start` on, `size` positions; the first pass starts the sums, others go on with C."""

    start: Value
    size: int
    first: bool


@dataclass(frozen=True, slots=True)
class Block:
    """What the inner loops work on: a part of K, some panels from column `column` on, some row tiles from `row` on."""

    part: Pass
    columns: Range
    column: Value
    panels: Value
    rows: Range
    row: Value
    tiles: Value


class GemmTile:
    """Emits the register tiles of one kernel. What multiplies otherwise (a matrix unit) overrides where operands lie.

    Attributes:
        b: Where code is emitted.
        c, a, b_in, acc: Addresses of the matrices.
        share: The row tiles and panels that a call works on.
        packing_a, packing_b: How the operands are packed.
        terms: The products that are added up.
        registers: Vector registers of the target.
        rows, columns: Tiles along M, panels along N.
        panel_a, panel_b, sums: Packed operands, and sums for corrections, where they are needed.
        shared: The panels of B that the kernel is given.
        dots: What sums the last columns along K, where there are such columns.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        self.b = b
        self.gemm = gemm
        self.recipe = recipe
        pointers, self.share = arguments_of(b.function)
        self.c, self.a, self.b_in = pointers[:3]
        self.acc = pointers[3] if gemm.acc else None
        if recipe.b_at is not None:
            place = b.gep(I8, b.retype(self.b_in, I8), recipe.b_at)
            self.b_in = b.retype(place, recipe.operand_b if recipe.shared_b else gemm.b.element)
        self.partial = self._partial(target)
        self.epilogue = self._epilogue(target, pointers[4 if gemm.acc else 3 :])
        step, lanes = recipe.kstep, recipe.lanes
        flip_a, flip_b = recipe.correction == "columns", recipe.correction == "rows"
        by_columns = recipe.unit == "fma" and not gemm.a.is_row_major
        self.packing_a = Packing(gemm.a, recipe.operand_a, gemm.lhs_sign, 1, step, flip_a, lanes, by_columns)
        self.packing_b = Packing(gemm.b, recipe.operand_b, gemm.rhs_sign, recipe.width, step, flip_b, lanes)
        self.columns = column_ranges(gemm, recipe)
        self.rows = row_ranges(gemm, recipe)
        self.terms = Sums(b, gemm.sums)
        self.next_round = NextRound(b, pointers, gemm, recipe)
        self.target = target
        self.panel_a: Value | None = None
        self.panel_b: Value | None = None
        self.sums: Value | None = None
        self.shared: Panels | None = None
        self.dots = LastColumns(b, gemm, target, recipe.dots, recipe.lanes) if recipe.dots else None
        if recipe.shared_b:
            self._take_panels()

    def _take_panels(self) -> None:
        """B is packed, with what the sums have to be corrected by."""
        b, recipe = self.b, self.recipe
        self.panel_b = self.b_in
        self.shared = Panels.of(self.gemm, recipe)
        if recipe.correction == "columns":
            behind = b.gep(I8, self.b_in, self.shared.sums_at)
            self.sums = b.retype(behind, recipe.accumulator)

    def _epilogue(self, target: Target, arguments: Sequence[Value]) -> Epilogue | None:
        gemm = self.gemm
        if gemm.epilogue is None:
            return None
        count = len(expression_parameters(gemm.epilogue)[0])
        leaves, scalars = arguments[:count], arguments[count:]
        consume = self.partial.add if self.partial else self._store_part
        return Epilogue(self.b, gemm.epilogue, leaves, scalars, self.recipe, target, gemm.result, self._sign, consume)

    def _partial(self, target: Target) -> Partial | None:
        gemm = self.gemm
        if gemm.reduction is None or gemm.epilogue is None:
            return None
        operation, axis = gemm.reduction
        lanes = min(self.recipe.lanes, max(1, target.vector_bytes * 8 // gemm.epilogue.bits))
        combine = Combine(operation, gemm.epilogue.element)
        return Partial(self.b, combine, axis, (gemm.m, gemm.n), lanes, gemm.c, self.c)

    @property
    def _sign(self) -> Sign:
        """How sums are widened: a negative operand makes negative ones."""
        return "u" if self.gemm.lhs_sign == self.gemm.rhs_sign == "u" else "s"

    def _store_part(self, place: Place, value: Value) -> None:
        store_vector(self.b, self.gemm.c, address_of(self.b, self.gemm.c, self.c, place), place, value)

    # One register tile -----------------------------------------------------------------------------------------

    def tile(self, block: Block, i: Value, j: Value) -> None:
        """One register tile: start, sum over K, finish."""
        b = self.b
        row = b.add(block.row, b.mul(i, block.rows.size), "row")
        column = b.add(block.column, b.mul(j, block.columns.size), "col")
        a = self.a_address(block, i, row)
        rhs = self.b_address(block, j, column)
        start = self.start(block, (i, j), (row, column))
        self.next_round.enter(block.rows.count, block.columns.count, (i, j))
        self.finish(block, self.total(block, start, a, rhs), row, column)

    def finish(self, block: Block, total: Value, row: Value, column: Value) -> None:
        """What follows once a tile's sums are complete."""
        b, gemm = self.b, self.gemm
        if self.epilogue is not None:
            self.epilogue.finish(total, block.rows, block.columns, (row, column))
            return
        padding = (block.rows.padding, block.columns.padding)
        out = convert(b, total, gemm.c.element, self._sign)
        type_ = tile(gemm.c.element, block.rows.size, block.columns.size, padding)
        token = b.typeinfo(out, type_, "c")
        if not gemm.c.is_row_major:
            type_ = type_.transposed((1, 0))
            token = b.typeinfo(b.transpose(token, (1, 0), type_, "c.columns"), type_, "c")
        self.next_round.store(self.at(gemm.c, self.c, row, column), token, gemm.c.pitch)

    def total(self, block: Block, start: Value, a: Value, rhs: Value) -> Value:
        """`start` and all products of the sum, given where the first one's operands are."""
        with self.terms.loop([start]) as term:
            places = self.term_addresses(block, term.index, a, rhs)
            term.next(self.add_product(block, term.carried[0], *places))
        return term.results[0]

    def add_product(self, block: Block, start: Value, a: Value, rhs: Value) -> Value:
        """`start + A[tile, :] @ B[:, panel]`."""
        steps = -(-block.part.size // self.recipe.kstep)
        is_short = self._is_short(block, steps)
        tile_ = block.rows.size, -(-block.columns.size // self.recipe.lanes)
        depth = positions_at_once(self.gemm, self.recipe, self.target, tile_, written_out=is_short)
        looped = 0 if is_short else steps // depth * depth
        if is_short and self.gemm.batch is not None:
            a = self.plain(block, a)
        if looped:
            with self.b.loop(0, looped, depth, carry=[start], name="k") as loop:
                loop.next(self._add_steps(block, loop.carried[0], (a, rhs), loop.index, depth))
            start = loop.results[0]
        for number in range(looped, steps, depth):
            start = self._add_steps(block, start, (a, rhs), const_int(I64, number), min(depth, steps - number))
        return start

    def _is_short(self, block: Block, steps: int) -> bool:
        """Whether a sum is too short for a loop: fewer instructions let a machine look further ahead.

        Half of the registers have to be free: LLVM loads early what it can, and would spill. An element of A without an
        index is read by the multiply-add itself, as one instruction: 16x16x16 half takes 198 cycles with a loop, 180
        without, 270 and 208 where two threads share a core.
        """
        vectors = -(-block.columns.size // self.recipe.lanes)
        sums = block.rows.size * vectors
        fits = steps <= _FEW and steps * sums <= _SHORT and 2 * (sums + vectors) <= self.target.registers + 2
        return fits and self.recipe.unit != "matrix" and not self.recipe.ahead

    def _add_step(self, block: Block, sums: Value, operands: tuple[Value, Value], number: Value) -> Value:
        """The sums after one more step of K."""
        b, recipe = self.b, self.recipe
        k = b.mul(number, recipe.kstep)
        missing = 0 if recipe.pack_b else block.columns.padding
        acc_type = tile(recipe.accumulator, block.rows.size, block.columns.size, (0, missing))
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs_tile = self.load_a(block, operands[0], k)
        rhs_tile = self.load_b(block, operands[1], k)
        following = b.mma(recipe.mma, acc, lhs_tile, rhs_tile, acc_type)
        if recipe.ahead:
            self.prefetch_b(block, operands[1], k)
        self.next_round.fetch(number)
        return following

    def _add_steps(self, block: Block, sums: Value, operands: tuple[Value, Value], number: Value, depth: int) -> Value:
        """The sums after some more positions of K; several at a time where both operands lie in rows."""
        if depth == 1:
            return self._add_step(block, sums, operands, number)
        b, recipe, gemm = self.b, self.recipe, self.gemm
        rows, columns = block.rows.size, block.columns.size
        of_b = tile(recipe.operand_b, depth, columns, (0, block.columns.padding))
        acc_type = tile(recipe.accumulator, rows, columns, (0, block.columns.padding))
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs = b.tensor_load(
            self.a_at(block, operands[0], number),
            tile(recipe.operand_a, rows, depth),
            (0, gemm.a.row_stride),
            "a",
        )
        place = b.gep(recipe.operand_b, operands[1], b.mul(number, gemm.b.row_stride))
        rhs = b.tensor_load(place, of_b, (0, gemm.b.row_stride), "b")
        following = b.mma(recipe.mma, acc, lhs, rhs, acc_type)
        for at in range(depth if recipe.fetch else 0):
            self.next_round.fetch(b.add(number, at))
        return following

    def term_addresses(self, block: Block, index: Value, a: Value, rhs: Value) -> tuple[Value, Value]:
        """Where a product of the sum finds its operands, given where the first one does."""
        b, recipe = self.b, self.recipe
        if recipe.pack_a:
            a_offset = b.mul(index, block.rows.size * self.packing_a.depth(block.part.size))
        else:
            a_offset = self.terms.offset(0, index)
        if recipe.pack_b:
            part = self.gemm.k if recipe.shared_b else block.part.size
            b_offset = b.mul(index, block.columns.size * self.packing_b.depth(part))
        else:
            b_offset = self.terms.offset(1, index)
        return b.gep(recipe.operand_a, a, a_offset), b.gep(recipe.operand_b, rhs, b_offset)

    def at(self, view: View, base: Value, row: Value, column: Value) -> Value:
        """Address of an element of a matrix."""
        b = self.b
        return b.gep(view.element, base, b.add(b.mul(row, view.row_stride), b.mul(column, view.col_stride)))

    def a_address(self, block: Block, i: Value, row: Value) -> Value:
        """Where row tile `i` of the block begins, packed or not."""
        if not self.recipe.pack_a:
            return self.at(self.gemm.a, self.a, row, block.part.start)
        if self.recipe.whole_a:
            return self.panel_of_a(block.part, row, const_int(I64, 0))
        return self.panel_of_a(block.part, const_int(I64, 0), self.b.mul(i, block.rows.size))

    def panel_of_a(self, part: Pass, row: Value, behind: Value) -> Value:
        """Where the packed row tile begins that is so many rows behind a packed row."""
        b = self.b
        assert self.panel_a is not None
        depth = self.packing_a.depth(part.size) * self.terms.count
        return b.gep(self.recipe.operand_a, self.panel_a, b.mul(b.add(row, behind), depth))

    def b_address(self, block: Block, j: Value, column: Value) -> Value:
        """Where panel `j` of the block begins, packed or not."""
        if not self.recipe.pack_b:
            return self.at(self.gemm.b, self.b_in, block.part.start, column)
        assert self.panel_b is not None
        if self.shared is not None:
            return self.b.gep(self.recipe.operand_b, self.panel_b, self.place_of_panel(self.shared, block, column))
        depth = self.packing_b.depth(block.part.size) * self.terms.count
        return self.b.gep(self.recipe.operand_b, self.panel_b, self.b.mul(j, depth * block.columns.size))

    def place_of_panel(self, shared: Panels, block: Block, column: Value) -> Value:
        """Elements from the first of the panels that the kernel is given to the one of a column, at the pass's K."""
        b = self.b
        panel = b.mul(shared.place(b, block.columns, column), shared.depth)
        return b.add(panel, b.mul(block.part.start, block.columns.size))

    def load_a(self, block: Block, base: Value, k: Value) -> Value:
        """The tile's rows of A at position `k`."""
        b, recipe, view = self.b, self.recipe, self.gemm.a
        type_ = tile(recipe.operand_a, block.rows.size, recipe.kstep)
        if recipe.pack_a and self.packing_a.by_columns:
            return b.tensor_load(self.a_at(block, base, b.mul(k, block.rows.size)), type_, (0, 1), "a")
        if recipe.pack_a:
            depth = self.packing_a.depth(block.part.size)
            return b.tensor_load(self.a_at(block, base, k), type_, (0, depth), "a")
        return b.tensor_load(self.a_at(block, base, b.mul(k, view.col_stride)), type_, (0, view.row_stride), "a")

    def a_at(self, block: Block, base: Value, offset: Value) -> Value:
        """Address of elements of A behind others."""
        address = self.b.gep(self.recipe.operand_a, base, offset)
        return address if isinstance(offset, ConstInt) else self.plain(block, address)

    def plain(self, block: Block, address: Value) -> Value:
        """An address of A, in a register of its own where each element is read by one multiply-add."""
        once = block.columns.size <= self.recipe.lanes and block.rows.size > _PAYS and self.recipe.unit != "matrix"
        return self.b.plain(address, "a.at") if once and self.target.broadcasts else address

    def prefetch_b(self, block: Block, base: Value, k: Value) -> None:
        """Ask for the columns of B that are multiplied some steps later."""
        b, recipe, size = self.b, self.recipe, block.columns.size
        stride = size if recipe.pack_b else self.gemm.b.row_stride
        element = bits_of(recipe.operand_b) // 8
        start = b.gep(recipe.operand_b, base, b.mul(k, stride))
        for line in range(0, size * recipe.kstep * element, LINE):
            b.prefetch(start, recipe.ahead * recipe.kstep * stride * element + line)

    def load_b(self, block: Block, base: Value, k: Value) -> Value:
        """The panel's columns of B at position `k`."""
        b, recipe, size = self.b, self.recipe, block.columns.size
        if not recipe.pack_b:
            address = b.gep(recipe.operand_b, base, b.mul(k, self.gemm.b.row_stride))
            if self.gemm.b.group > 1:
                return load_vnni(b, recipe.operand_b, address, recipe.kstep, size, recipe.width)
            return b.tensor_load(address, tile(recipe.operand_b, 1, size, (0, block.columns.padding)), None, "b")
        address = b.gep(recipe.operand_b, base, b.mul(k, size))
        if recipe.width == 1:
            return b.tensor_load(address, tile(recipe.operand_b, recipe.kstep, size), None, "b")
        return load_vnni(b, recipe.operand_b, address, recipe.kstep, size, recipe.width)

    # How the sums start ----------------------------------------------------------------------------------------

    def start(self, block: Block, ij: tuple[Value, Value], place: tuple[Value, Value]) -> Value:
        """What the sums start from: zero, Acc or C, and a correction."""
        b, recipe, gemm = self.b, self.recipe, self.gemm
        rows, columns = block.rows, block.columns
        start: Value = zero(VectorType(rows.size * columns.size, recipe.accumulator))
        view, base = (gemm.acc, self.acc) if block.part.first else (gemm.c, self.c)
        if view is not None and base is not None:
            type_ = tile(view.element, rows.size, columns.size, (rows.padding, columns.padding))
            token = b.tensor_load(self.at(view, base, *place), type_, (0, view.row_stride), "c")
            start = convert(b, b.tovector(token, type_, "c.old"), recipe.accumulator, "s")
        correction = self.correction(block, ij, place[1])
        if correction is None:
            return start
        return correction if view is None else b.binary("add", start, correction)

    def correction(self, block: Block, ij: tuple[Value, Value], column: Value) -> Value | None:
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
