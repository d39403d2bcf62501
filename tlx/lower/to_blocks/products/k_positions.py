"""Positions along K of a sum of products: those of each product follow those of the one before.

    sum of 3 products of K = 4      position     0 1 2 3   4 5 6 7   8 9 10 11
                                    product      0         1         2
                                    its k        0 1 2 3   0 1 2 3   0 1 2 3

The operands of a product begin at offsets from those of the first one, which a table in the module lists.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.module import Module, UnparsedText
from tlx.ir.types import I64, PTR, ArrayType, Type
from tlx.ir.values import OpaqueConstant, Value
from tlx.lower.to_blocks.kernel import GridKernel, as_index
from tlx.lower.to_blocks.products.implicit_gemm import MergedProduct
from tlx.lower.to_tiles.problem import Gemm
from tlx.target.grid_unit import BlockShape


@dataclass(frozen=True, slots=True)
class KPosition:
    """A position along K.

    Attributes:
        number: The position, i32.
        k: The position in its product, i32.
        offsets: Elements from the operands of the first product to its operands, i64; None for the first product.
    """

    number: Value
    k: Value
    offsets: tuple[Value, Value] | None = None


class KPositions:
    """Finds products by their positions.

    Args:
        module: The module, to which the table is added.
        kernel: The kernel.
        gemm: The sum.
        depth: Positions of a stage.
        splits: How many blocks share the positions: a divisor of the number of stages.
        split: Which of them the block is, i32.

    Attributes:
        count: All positions.
        stages: Stages of a block.
    """

    def __init__(
        self, module: Module, kernel: GridKernel, gemm: Gemm, depth: int, splits: int = 1, split: Value | None = None
    ) -> None:
        self.kernel, self.gemm = kernel, gemm
        terms = terms_of(gemm)
        self.count = gemm.k * len(terms)
        self.stages = -(-self.count // depth) // splits
        self._start = None if split is None else kernel.b.mul(split, self.stages * depth)
        self._table = _added_table(module, kernel, terms) if len(terms) > 1 else None
        self._stage_has_one = gemm.k % depth == 0

    def first(self, stage: Value, depth: int) -> KPosition:
        """The first position of a stage, by its number (i32) among those of the block."""
        number = self.kernel.b.mul(stage, depth)
        if self._start is not None:
            number = self.kernel.b.add(self._start, number)
        return self._position(number) if self._stage_has_one else KPosition(number, number)

    def after(self, first: KPosition, distance: Value) -> KPosition:
        """The position at some distance (i32) from the first one of its stage."""
        b = self.kernel.b
        number = b.add(first.number, distance)
        if self._stage_has_one:
            return KPosition(number, b.add(first.k, distance), first.offsets)
        return self._position(number)

    def _position(self, number: Value) -> KPosition:
        if self._table is None:
            return KPosition(number, number)
        b = self.kernel.b
        term, k = self.kernel.divided(b.umin(number, self.count - 1), self.gemm.k)
        entry = b.gep(I64, self._table, as_index(b, b.mul(term, 2)))
        return KPosition(number, k, (b.load(I64, entry, 8), b.load(I64, b.gep(I64, entry, 1), 8)))


@dataclass(frozen=True, slots=True)
class TileSums:
    """The sums of a block's tile: what a kernel of a product computes.

    Attributes:
        merged: The product.
        shape: The tile.
        shared: The block's shared memory.
        accumulator: Element type of the sums.
        positions: The positions along K.
    """

    merged: MergedProduct
    shape: BlockShape
    shared: Value
    accumulator: Type
    positions: KPositions


def terms_of(gemm: Gemm) -> tuple[tuple[int, int], ...]:
    """The offsets of each product of the sum."""
    if not gemm.all_pairs:
        return gemm.term_offsets
    return tuple((a, b) for a, _ in gemm.term_offsets for _, b in gemm.term_offsets)


def _added_table(module: Module, kernel: GridKernel, terms: tuple[tuple[int, int], ...]) -> Value:
    name = module.global_names.fresh(f"{kernel.function.name}.terms")
    numbers = ", ".join(f"i64 {offset}" for term in terms for offset in term)
    type_ = ArrayType(2 * len(terms), I64)
    module.append(UnparsedText(f"\n\n@{name} = private unnamed_addr constant {type_} [{numbers}], align 8\n"))
    return OpaqueConstant(PTR, f"@{name}")
