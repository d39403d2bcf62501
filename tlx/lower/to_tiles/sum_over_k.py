"""What a register tile of a matrix product sums over K: one product, or several of a sum.

for each product of the sum, for k: acc += A[tile, k] @ B[k, panel]

The loop over K is written out where the sum is short, and cut into parts where the tile asks for what others need.
"""

from __future__ import annotations

from typing import Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64
from tlx.ir.values import Value, const_int
from tlx.lower.to_tiles.depth import positions_at_once
from tlx.lower.to_tiles.given import needed_registers
from tlx.lower.to_tiles.next_round import NextRound
from tlx.lower.to_tiles.next_tile import NextTile
from tlx.lower.to_tiles.operands import Block, Operands
from tlx.lower.to_tiles.problem import Gemm
from tlx.lower.to_tiles.recipe import Recipe
from tlx.lower.to_tiles.share import arguments_of
from tlx.lower.to_tiles.tiles import tile
from tlx.lower.to_tiles.turns import Turns
from tlx.target import Target

_ROWS_AHEAD: Final = 3
"""Rows of B that are converted before they are multiplied."""
_MOST_STEPS: Final = 16
_MOST_PRODUCTS: Final = 256
"""Multiply-adds, and steps, up to which a sum is written out."""
_ROOM: Final = 2
"""Registers that LLVM needs where it may load operands of the next steps."""


class SumOverK(Operands):
    """Emits the sum over K of a register tile.

    Attributes:
        next_round, next_tile: What is asked for meanwhile.
    """

    def __init__(self, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> None:
        super().__init__(b, gemm, recipe, target)
        self.next_round = NextRound(b, arguments_of(b.function)[0], gemm, recipe)
        self.next_tile = NextTile(b)

    def _registers(self, block: Block) -> tuple[int, int]:
        """Rows of the tile, and registers of a row."""
        return block.rows.size, -(-block.columns.size // self.recipe.lanes)

    def total(self, block: Block, start: Value, a: Value, rhs: Value) -> Value:
        """`start` and all products of the sum, given where the first one's operands are."""
        if self.takes_turns:
            return self._total_in_turns(block, start, a, rhs)
        with self.terms.loop([start]) as term:
            places = self.term_addresses(block, term.index, a, rhs)
            term.next(self._add_product(block, term.carried[0], *places))
        return term.results[0]

    def _total_in_turns(self, block: Block, start: Value, a: Value, rhs: Value) -> Value:
        """The same where the products take turns, written out where LLVM has room to load early.

        6x16 floats in 16 registers would be spilled six times in nine products, 6x64 in 32 are not.
        """

        def add(sums: Value, operands: tuple[Value, Value]) -> Value:
            return self._add_step(block, sums, operands, const_int(I64, 0))

        rows, vectors = self._registers(block)
        is_roomy = needed_registers(rows, vectors) + _ROOM <= self.target.registers
        turns = Turns(self.b, self.gemm, self.terms, rows, add)
        return turns.total(start, (a, rhs), block.part.size, written_out=is_roomy)

    def _add_product(self, block: Block, start: Value, a: Value, rhs: Value) -> Value:
        """`start + A[tile, :] @ B[:, panel]`."""
        steps = -(-block.part.size // self.recipe.kstep)
        is_short = self._is_short(block, steps)
        depth = positions_at_once(self.gemm, self.recipe, self.target, self._registers(block), written_out=is_short)
        looped = 0 if is_short else steps // depth * depth
        if is_short and self.gemm.batch is not None:
            a = self.plain(block, a)
        done = 0
        pieces = block.rows.size * self.next_tile.pieces
        if self.recipe.asks and looped >= pieces * depth:
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

    def _add_ahead(self, block: Block, start: Value, operands: tuple[Value, Value], steps: int) -> Value:
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

    def _add_parts(self, block: Block, start: Value, operands: tuple[Value, Value], each: int, depth: int) -> Value:
        """The sums after a part of K for each row of the tile, whose pieces are `each` steps long.

        With a part, the tile asks for a row, and with a piece of it for another one.
        """
        b, pieces = self.b, self.next_tile.pieces
        with b.loop(0, block.rows.size, carry=[start], name="part") as part:
            begin = b.mul(part.index, pieces * each)
            self.next_tile.begin(part.index, begin, pieces * each)
            with b.loop(0, pieces, carry=[part.carried[0]], name="piece") as piece:
                first = b.add(begin, b.mul(piece.index, each))
                self.next_tile.begin_piece(b.add(b.mul(part.index, pieces), piece.index), first, each)
                with b.loop(first, b.add(first, each), depth, carry=[piece.carried[0]], name="k", runs=True) as loop:
                    loop.next(self._add_steps(block, loop.carried[0], operands, loop.index, depth))
                piece.next(loop.results[0])
            part.next(piece.results[0])
        self.next_tile.end()
        return part.results[0]

    def _is_short(self, block: Block, steps: int) -> bool:
        """Whether a sum is too short for a loop: fewer instructions let a machine look further ahead.

        Half of the registers have to be free: LLVM loads early what it can, and would spill. An element of A without an
        index is read by the multiply-add itself, as one instruction: 16x16x16 half takes 198 cycles with a loop, 180
        without, 270 and 208 where two threads share a core.
        """
        rows, vectors = self._registers(block)
        sums = rows * vectors
        is_short = steps <= _MOST_STEPS and steps * sums <= _MOST_PRODUCTS
        fits = 2 * (sums + vectors) <= self.target.registers + 2
        return is_short and fits and self.recipe.unit != "matrix" and not self.recipe.ahead

    def _add_step(
        self, block: Block, sums: Value, operands: tuple[Value, Value], number: Value, row: Value | None = None
    ) -> Value:
        """The sums after one more step of K, for which a row of B may be there already."""
        b, recipe = self.b, self.recipe
        k = b.mul(number, recipe.kstep)
        missing = 0 if recipe.pack_b else block.columns.padding
        acc_type = tile(recipe.accumulator, block.rows.size, block.columns.size, (0, missing))
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs_tile = self.load_a(block, operands[0], k)
        rhs_tile = row or self.load_b(block, operands[1], k)
        following = b.mma(recipe.mma, acc, lhs_tile, rhs_tile, acc_type)
        if recipe.ahead:
            self.prefetch_b(block, operands[1], k)
        self.next_round.fetch(number)
        self.next_tile.step(number)
        return following

    def _add_steps(self, block: Block, sums: Value, operands: tuple[Value, Value], number: Value, depth: int) -> Value:
        """The sums after some more positions of K; several at a time where both operands lie in rows."""
        if depth == 1:
            return self._add_step(block, sums, operands, number)
        b, recipe, gemm = self.b, self.recipe, self.gemm
        rows, columns = block.rows.size, block.columns.size
        padding = (0, 0 if recipe.pack_b else block.columns.padding)
        a_stride = self.packing_a.depth(block.part.size) if recipe.pack_a else gemm.a.row_stride
        b_stride = columns if recipe.pack_b else gemm.b.row_stride
        of_b = tile(recipe.operand_b, depth, columns, padding)
        acc_type = tile(recipe.accumulator, rows, columns, padding)
        acc = b.typeinfo(sums, acc_type, "acc")
        lhs = b.tensor_load(
            self.a_at(block, operands[0], number),
            tile(recipe.operand_a, rows, depth),
            (0, a_stride),
            "a",
        )
        place = b.gep(recipe.operand_b, operands[1], b.mul(number, b_stride))
        rhs = b.tensor_load(place, of_b, (0, b_stride), "b")
        following = b.mma(recipe.mma, acc, lhs, rhs, acc_type)
        for at in range(depth if recipe.fetch else 0):
            self.next_round.fetch(b.add(number, at))
        self.next_tile.step(number)
        return following
