"""How attention is computed: by which products, with how many rows and positions at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.ir.types import FLOAT
from tlx.lower.to_blocks.attention.copies import PER_CHUNK, boxes_of
from tlx.lower.to_blocks.attention.match import Attention
from tlx.target.grid_unit import LINE_BYTES, FragmentProduct, GridUnit, GroupProduct

_GROUP: Final = 4
"""Warps of a group."""
_POSITIONS: Final = 64
"""Positions of a tile of K and V, for products of fragments."""
_GROUP_POSITIONS: Final = (64, 128)
"""The same for products of groups: of rows of up to 64 elements, of which two blocks run at once, and of longer ones.

On an H200, 16 heads of 4096 rows: of 64 elements 416 and 329 TFLOP/s, of 128 elements 408 and 462 (2026-11-29).
"""
_GROUPS: Final = 2
"""Groups of a block, a power of two."""
_OTHER_REGISTERS: Final = 32
"""Registers of a thread for other things than Q, scores, weights and sums."""
_LONGEST: Final = 256
"""Elements of a row of Q or V; the sums of 16 rows are 128 registers of a thread."""
_WIDE: Final = 128
"""Elements of a row of V from which a warp has 16 rows only."""
STAGES: Final = 2
DEPTH: Final = 16
ROWS: Final = 16
COLUMNS: Final = 8


def unit_of(grid: GridUnit, problem: Attention) -> FragmentProduct | None:
    """The product of fragments for both products."""
    operands = {(view.element, "f") for gemm in (problem.scores, problem.product) for view in (gemm.a, gemm.b)}
    sizes = ROWS, COLUMNS, DEPTH
    for unit in grid.products:
        if isinstance(unit, FragmentProduct) and (unit.rows, unit.columns, unit.depth) == sizes:
            types = {(str(element), sign) for element, sign in operands}
            if types == {unit.lhs} == {unit.rhs} and unit.accumulator == str(FLOAT):
                return unit
    return None


def has_attention_kernel(grid: GridUnit, problem: Attention) -> bool:
    """Whether there is a kernel: of 16-bit floats, with rows of Q, K and V that are aligned."""
    scores, product = problem.scores, problem.product
    lines = (scores.a, scores.b.transposed, product.b)
    fits = all(view.is_row_major and view.row_stride % PER_CHUNK == 0 for view in lines)
    fits &= all(view.cols % PER_CHUNK == 0 and view.cols <= _LONGEST for view in lines)
    return (
        fits
        and unit_of(grid, problem) is not None
        and AttentionPlan.of(grid, problem, 1).shared <= grid.max_shared_bytes
    )


def group_of(grid: GridUnit, problem: Attention) -> GroupProduct | None:
    """The product of groups for both products, if there is one; it is of the same types as that of fragments."""
    unit, sizes = unit_of(grid, problem), (_GROUP * ROWS, DEPTH)
    groups = [g for g in grid.products if isinstance(g, GroupProduct) and (g.rows, g.depth) == sizes]
    types = None if unit is None else (unit.lhs, unit.rhs, unit.accumulator)
    return next((group for group in groups if (group.lhs, group.rhs, group.accumulator) == types), None)


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """How a block computes its rows.

    Attributes:
        problem: What is computed.
        fragments: Fragments of 16 rows of a warp.
        warps: Warps of a block.
        positions: Positions of a tile of K and V.
        group: The product of groups of warps; None if each warp multiplies fragments.
    """

    problem: Attention
    fragments: int
    warps: int
    positions: int
    group: GroupProduct | None

    @classmethod
    def of(cls, grid: GridUnit, problem: Attention, iterations: int) -> AttentionPlan:
        """The first of the plans for which all multiprocessors have a block; else the last."""
        group = group_of(grid, problem)
        is_narrow = problem.product.n <= _WIDE and problem.scores.k <= _WIDE
        if group is not None and is_narrow:
            positions = _GROUP_POSITIONS[boxes_of(max(problem.scores.k, problem.product.n)) > 1]
            plans = [cls(problem, 1, n * _GROUP, positions, group) for n in range(_GROUPS, 0, -1)]
        else:
            plans = [cls(problem, n, _GROUP, _POSITIONS, None) for n in ((2, 1) if is_narrow else (1,))]
        plans = [plan for plan in plans if plan.shared <= grid.max_shared_bytes] or plans[-1:]
        busy = grid.multiprocessors
        return next((plan for plan in plans if -(-problem.scores.m // plan.rows) * iterations >= busy), plans[-1])

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return self.warps * self.fragments * ROWS

    def resident(self, grid: GridUnit) -> int:
        """Blocks that a multiprocessor runs at once at least."""
        steps, outputs = (-(-size // DEPTH) for size in (self.problem.scores.k, self.problem.product.n))
        held = self.fragments * (self.positions // 2 + self.positions // 4 + 8 * outputs)
        held += 4 * steps if self.group is not None else 0
        by_registers = grid.registers // (
            self.warps * grid.warp_threads * min(held + _OTHER_REGISTERS, grid.max_thread_registers)
        )
        return max(1, min(2, by_registers, grid.max_shared_bytes // self.shared))

    @property
    def query_bytes(self) -> int:
        """Bytes of the rows of Q."""
        return self.rows * boxes_of(self.problem.scores.k) * LINE_BYTES

    @property
    def key_bytes(self) -> int:
        """Bytes of a tile of K."""
        return self.positions * boxes_of(self.problem.scores.k) * LINE_BYTES

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: tiles of K and V."""
        return self.key_bytes + self.positions * boxes_of(self.problem.product.n) * LINE_BYTES

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.query_bytes + STAGES * self.stage_bytes
