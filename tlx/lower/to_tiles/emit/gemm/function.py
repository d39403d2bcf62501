"""What all emitters of a product's kernel share: its function, its cache blocks, and the terms of a sum of products."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from tlx.ir.builder import LoopState
from tlx.ir.module import UnparsedText
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I8, I64, ArrayType
from tlx.ir.values import Aggregate, ConstInt, Global, Value
from tlx.lower.to_tiles.emit.kernel import ScratchBuffer, TileRange, arguments_and_tile_range
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import Gemm, c_holds_sums, partial_sums
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, column_ranges, k_passes, row_ranges
from tlx.target.instructions.dots import Sign
from tlx.target.target import Target


@dataclass(eq=False, slots=True)
class PartialSums:
    """The matrix that holds the sums between passes over K: C, or a temporary.

    Attributes:
        view: Its view.
        memory: Where it is; without an address until the temporary is allocated.
    """

    view: MatrixView
    memory: ScratchBuffer


@dataclass(frozen=True, slots=True)
class GemmFunction:
    """The function of a product's kernel, with what its emitters read.

    Attributes:
        b: The builder of its body.
        gemm, recipe, target: The product, its recipe, and the machine.
        arguments: Addresses of C, A, B and, if there is one, Acc; then the epilogue's leaves and scalars.
        c, a: Addresses of C and A.
        rhs: Address of B; where the argument points to B in the forms of several versions, that of this version's.
        share: The row tiles and panels that a call computes.
        rows, columns: Ranges of equal row tiles, and of equal panels.
        sums: Where sums stay between passes over K.
    """

    b: TensorBuilder
    gemm: Gemm
    recipe: Recipe
    target: Target
    arguments: Sequence[Value]
    c: Value
    a: Value
    rhs: Value
    share: TileRange
    rows: Sequence[EqualTiles]
    columns: Sequence[EqualTiles]
    sums: PartialSums

    @classmethod
    def of(cls, b: TensorBuilder, gemm: Gemm, recipe: Recipe, target: Target) -> GemmFunction:
        """The function of a builder."""
        arguments, share = arguments_and_tile_range(b.function)
        c, a, rhs = arguments[:3]
        packing = recipe.packing
        if packing.b_panel_offset is not None:
            form = b.gep(I8, b.retype(rhs, I8), packing.b_panel_offset)
            rhs = b.retype(form, recipe.mma.operand_b if packing.prepacked_b else gemm.b.element)
        rows, columns = row_ranges(gemm, recipe), column_ranges(gemm, recipe)
        view = partial_sums(gemm, recipe.mma.accumulator)
        sums = PartialSums(view, ScratchBuffer(c if c_holds_sums(gemm, recipe.mma.accumulator) else None))
        return cls(b, gemm, recipe, target, arguments, c, a, rhs, share, rows, columns, sums)

    @property
    def splits_k(self) -> bool:
        """Whether there are several passes over K."""
        return sum(part.count for part in k_passes(self.gemm, self.recipe)) > 1

    @property
    def sign(self) -> Sign:
        """How integer sums are extended: signed if an operand is."""
        return "u" if self.gemm.lhs_sign == self.gemm.rhs_sign == "u" else "s"

    def at(self, view: MatrixView, base: Value, row: Value, column: Value) -> Value:
        """Address of an element of a matrix."""
        b = self.b
        return b.gep(view.element, base, b.add(b.mul(row, view.row_stride), b.mul(column, view.col_stride)))


@dataclass(frozen=True, slots=True)
class KPass:
    """A pass over `size` positions of K from `start` on.

    Attributes:
        start, size: The positions.
        is_first: Whether it initialises the sums; later passes add to the partial sums.
        is_last: Whether it finishes the tiles; earlier passes store partial sums.
    """

    start: Value
    size: int
    is_first: bool
    is_last: bool


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """A cache block: a pass over K, some panels from column `column` on, some row tiles from `row` on.

    Attributes:
        k_pass: The pass.
        columns, column, panels: The range of panels, the first column, and the number of panels.
        rows, row, tiles: The range of row tiles, the first row, and the number of row tiles.
    """

    k_pass: KPass
    columns: EqualTiles
    column: Value
    panels: Value
    rows: EqualTiles
    row: Value
    tiles: Value


Offset = tuple[int, int]
"""Of A and of B, in elements."""


@dataclass(eq=False)
class SumTerms:
    """The terms of a sum of products in one kernel.

    C = f(sum over s of A[s] @ B[s])        for s: for k: acc += A[s][tile, k] @ B[s][k, panel]

    The accumulators stay in registers throughout. `A[s]` begins `offsets[s][0]` elements after `A[0]`, and `B[s]`
    `offsets[s][1]` elements after `B[0]`; offsets that are not linear in `s` are read from a table. A single product is
    a sum of one term.

    Attributes:
        b: The builder.
        offsets: Element offsets of each term's operands from those of the first.
    """

    b: TensorBuilder
    offsets: tuple[Offset, ...]
    _tables: dict[int, Global] = field(default_factory=dict[int, Global])

    @property
    def count(self) -> int:
        """Number of terms."""
        return len(self.offsets)

    def loop(self, carry: Sequence[Value] = ()) -> AbstractContextManager[LoopState]:
        """The loop over the terms; no loop for one term."""
        return self.b.loop(0, self.count, carry=carry, name="s")

    def offset(self, operand: int, index: Value) -> Value:
        """Elements from the first term's operand (0: A, 1: B) to that of another."""
        offsets = [pair[operand] for pair in self.offsets]
        step = offsets[1] if self.count > 1 else 0
        if offsets == [i * step for i in range(self.count)]:
            return self.b.mul(index, step)
        if isinstance(index, ConstInt):
            return ConstInt(I64, offsets[index.value])
        if operand not in self._tables:
            self._tables[operand] = self._table(offsets)
        return self.b.load(I64, self.b.gep(I64, self._tables[operand], index), 8, "offset")

    def _table(self, offsets: Sequence[int]) -> Global:
        module = self.b.module
        name = module.global_names.fresh("tlx.offsets")
        type_ = ArrayType(len(offsets), I64)
        value = Aggregate(type_, tuple(ConstInt(I64, offset) for offset in offsets), "[")
        module.append(UnparsedText(f"\n\n@{name} = private unnamed_addr constant {value.typed}, align 64"))
        return Global(module.pointer_to(type_), name)
