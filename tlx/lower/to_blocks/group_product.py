"""Products of groups of warps, which read their operands from shared memory while the group copies the next stages.

    multiply stage n, without waiting         the group's sums stay in registers
    start to copy stage n + stages - 2        over stage n - 2, whose products all groups have waited for
    wait for the products of stage n - 1

A group of four warps multiplies 64 rows of the tile; warp w of it holds rows 16 w to 16 w + 15 of the sums.
"""

from __future__ import annotations

from tlx.ir.types import I8, Type
from tlx.ir.values import Value
from tlx.lower.to_blocks.kernel import GridKernel, as_index
from tlx.lower.to_blocks.merging import MergedProduct
from tlx.lower.to_blocks.positions import Positions
from tlx.lower.to_blocks.staging import StagedOperand, StagedSums
from tlx.target.grid_unit import BlockShape, GroupProduct, SharedOperand


class GroupSums(StagedSums):
    """Emits the sums of a tile by products of groups; see the module's description."""

    rows = 16

    def __init__(
        self,
        kernel: GridKernel,
        merged: MergedProduct,
        shape: BlockShape,
        shared: Value,
        accumulator: Type,
        positions: Positions,
        product: GroupProduct,
    ) -> None:
        super().__init__(kernel, merged, shape, shared, accumulator, positions)
        self.product = product
        if positions.stages > shape.stages:
            self.ahead = shape.stages - 2  # the products of the stage multiplied last may not be complete
        warps = product.rows // self.rows
        self.group, _ = kernel.divided(kernel.thread, warps * kernel.grid.warp)

    def before_barrier(self) -> None:
        """Make what was copied visible to products."""
        self.product.operations.fence(self.b)

    def after_copies(self) -> None:
        """Wait for the products of the stage before."""
        self.product.operations.wait(self.b)

    def finished(self, acc: list[Value]) -> list[Value]:
        """The sums, when the last products are complete."""
        return self.product.operations.complete(self.b, acc)

    def multiplied(self, acc: list[Value], stage: Value) -> list[Value]:
        """Start the products of a stage."""
        product, b = self.product, self.b
        down = self.lhs.box_bytes if self.lhs.k_lines else product.rows * self.lhs.box_chunks * 16
        starts = [
            b.gep(I8, self.shared, as_index(b, b.add(b.add(stage, self.lhs.offset), b.mul(self.group, down)))),
            b.gep(I8, self.shared, as_index(b, b.add(stage, self.rhs.offset))),
        ]
        steps = range(self.shape.depth // product.depth)
        lhs, rhs = (
            [_part(operand, b.gep(I8, start, k * product.depth * _step(operand))) for k in steps]
            for operand, start in zip((self.lhs, self.rhs), starts, strict=True)
        )
        return product.operations.multiply(b, product, acc, lhs, rhs, self.shape.columns)


def _step(operand: StagedOperand) -> int:
    """Bytes from one position of K to the next in a box."""
    return operand.box_chunks * 16 if operand.k_lines else 16 // operand.per_chunk


def _part(operand: StagedOperand, address: Value) -> SharedOperand:
    return SharedOperand(address, operand.k_lines, operand.box_bytes, operand.box_chunks * 16)
