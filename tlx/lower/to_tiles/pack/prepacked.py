"""B packed as a whole: the layout of its panels, and the kernel that packs them."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.module import Module
from tlx.ir.types import I8, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.allocation import CACHE_LINE
from tlx.lower.to_tiles.emit.gemm.terms import SumTerms
from tlx.lower.to_tiles.emit.kernel import new_kernel
from tlx.lower.to_tiles.pack.panels import PanelLayout, PanelPacker, column_sums
from tlx.lower.to_tiles.parallel.tile_range import arguments_and_tile_range
from tlx.lower.to_tiles.problem.problems import Gemm
from tlx.lower.to_tiles.select.recipe import EqualTiles, Recipe, column_ranges
from tlx.target.target import Target


@dataclass(frozen=True)
class PackedPanels:
    """The packed form of all of B: its panels one after the other, then the sums of its columns.

    Attributes:
        packing: How B is packed.
        depth: Positions of K in a panel, over all products of the sum.
        width: Columns of all panels.
        ranges: The panels, in ranges; they may overlap in B, but never in the packed form.
    """

    packing: PanelLayout
    depth: int
    width: int
    ranges: tuple[EqualTiles, ...]

    @classmethod
    def of(cls, gemm: Gemm, recipe: Recipe) -> PackedPanels:
        """The panels of a product."""
        packing = PanelLayout.of_b(gemm, recipe)
        ranges = column_ranges(gemm, recipe)
        width = sum(columns.count * columns.size for columns in ranges)
        return cls(packing, packing.depth(gemm.k) * len(gemm.term_offsets), width, tuple(ranges))

    def place(self, b: Builder, columns: EqualTiles, column: Value) -> Value:
        """How many packed columns precede the panel that begins at `column` of B."""
        before = sum(other.count * other.size for other in self.ranges[: self.ranges.index(columns)])
        return b.add(column, before - columns.start)

    @property
    def sums_at(self) -> int:
        """Bytes from the first panel to the sums of columns."""
        return -(-self.depth * self.width * bytes_of(self.packing.element) // CACHE_LINE) * CACHE_LINE

    def size(self, recipe: Recipe) -> int:
        """Bytes of the packed form."""
        sums = self.width * bytes_of(recipe.mma.accumulator) if recipe.mma.correction == "columns" else 0
        return self.sums_at + sums


def packing_kernel(module: Module, gemm: Gemm, recipe: Recipe, target: Target, *, parts: bool = False) -> Function:
    """Add the kernel that packs B to the module: a function of pointers to the panels and to B.

    Where it works on `parts`, bounds follow as for any kernel; it uses those of panels, and ignores those of rows.
    """
    parameters = [("panels", recipe.mma.operand_b, "noalias"), ("b", gemm.b.element, "")]
    function = new_kernel(module, target, f"{gemm.kernel_name}.pack", parameters, parts=parts)
    b = TensorBuilder(module, function)
    (panels, source), share = arguments_and_tile_range(function)
    form, terms = PackedPanels.of(gemm, recipe), SumTerms(b, gemm.term_offsets)
    corrected = recipe.mma.correction == "columns"
    sums = b.retype(b.gep(I8, panels, form.sums_at), recipe.mma.accumulator) if corrected else None
    packer = PanelPacker(b, form.packing)
    for columns in form.ranges:
        with b.loop(*share.columns.of(b, form.ranges, columns), name="jp") as loop:
            column = columns.start_of(b, loop.index)
            place = form.place(b, columns, column)
            panel = b.gep(recipe.mma.operand_b, panels, b.mul(place, form.depth))
            first = b.gep(gemm.b.element, source, b.mul(column, gemm.b.col_stride))
            with terms.loop() as term:
                there = b.gep(recipe.mma.operand_b, panel, b.mul(term.index, form.depth // terms.count * columns.size))
                here = b.gep(gemm.b.element, first, terms.offset(1, term.index))
                packer.pack_b(here, there, columns, gemm.k)
            if sums is not None:
                out, groups = b.gep(recipe.mma.accumulator, sums, place), form.depth // recipe.mma.width
                column_sums(b, panel, out, columns.size, groups, recipe.mma.width, recipe.mma.accumulator)
    b.ret()
    return function
