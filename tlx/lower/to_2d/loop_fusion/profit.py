"""Profitability: which groups are computed in a loop, and how many parts an iteration computes.

A loop over batch dimensions pays if a result that only the group reads exceeds the second-level cache: a part of it is
smaller, and may stay in the caches between the operations. Two such loops are nested where there are two dimensions.

A loop over rows, or columns, of products reads their other operand again in each iteration. It pays if that is little,
compared with results that are much larger than the cache. An iteration then computes as many rows as the cache holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.tensors.model import TensorOp
from tlx.lower.memory.views import tensor_bytes
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.tensor_operations import STAGE
from tlx.lower.to_2d.loop_fusion.groups import BlockOperations, LoopGroup
from tlx.lower.to_2d.loop_fusion.legality import LoopPlacement, Obstacle
from tlx.lower.to_2d.loop_fusion.splits import Split
from tlx.target.costs.blocks import LoopFusionLimits

_LIVE_AT_ONCE: Final = 2
"""Results of a group that are in memory at the same time: the operand and the result of an operation."""
_MOST_ATTEMPTS: Final = 8


@dataclass(frozen=True, eq=False)
class FusedLoop:
    """A group that is computed in a loop.

    Attributes:
        group: Its operations.
        placement: Where the loop is.
        factor: Of the group's parts, how many an iteration computes.
    """

    group: LoopGroup
    placement: LoopPlacement
    factor: int

    @property
    def trips(self) -> int:
        """The trip count."""
        return self.group.parts // self.factor

    def split_of(self, op: TensorOp) -> Split:
        """The parts in which the loop computes the result of an operation."""
        return self.group.split_of(op).coarsened(self.factor)

    def is_disjoint_from(self, other: FusedLoop) -> bool:
        """Whether two loops share no instruction, none between theirs, and no memory at their boundaries."""
        blocks = [loop.group.block.name for loop in (self, other)]
        (start, end), (first, last) = self.placement.range, other.placement.range
        if blocks[0] == blocks[1] and start <= last and first <= end:
            return False
        here, there = set(self.group.inputs), set(other.group.inputs)
        return not (here & there or here & other.group.splits.keys() or there & self.group.splits.keys())


def find_loops(block: BlockOperations, remarks: Remarks, *, is_nested: bool) -> list[FusedLoop]:
    """The loops that pay, the best one first; they may have operations in common.

    Args:
        block: The operations.
        remarks: Receives what keeps operations out of loops.
        is_nested: Whether the block is the body of such a loop.
    """
    caches, limits = block.facts.target.caches, block.facts.target.block_costs.loop_fusion
    shared = limits.min_intermediate_caches * (caches.l1 if is_nested else caches.l2)
    search = _LoopSearch(block, _ProfitLimits(limits, shared, caches.l2), remarks)
    return sorted(search.loops(), key=_rank)


def _size(op: TensorOp) -> int:
    return tensor_bytes(op.result) if op.result is not None else 0


def _rank(loop: FusedLoop) -> tuple[bool, int, int]:
    """The best loop is first: those over batches, those with more results between the operations, and smaller parts."""
    return loop.group.whole_bytes > 0, -sum(loop.group.internal), _working_set(loop.group, loop.factor)


@dataclass(frozen=True, slots=True)
class _ProfitLimits:
    """The conditions under which a loop pays.

    Attributes:
        fusion: The limits of the target.
        shared: Bytes of a result that stays in the caches without a loop.
        cache: Bytes of the second-level cache.
    """

    fusion: LoopFusionLimits
    shared: float
    cache: int

    @property
    def most_whole(self) -> int:
        """Most bytes of the operands that every iteration reads as a whole."""
        return self.fusion.max_whole_operand_l2s * self.cache

    @property
    def least_with_whole(self) -> int:
        """Bytes of the largest result that a loop with such operands must exceed."""
        return self.fusion.min_whole_operand_result_l2s * self.cache


def _splits(block: BlockOperations, root: TensorOp) -> Iterable[Split]:
    """The splits of a result along each of its dimensions, which the operations of its tree know."""
    types = [op.result for op in block.members(root) if op.result is not None and root.result is not None]
    splits = [
        Split.along(type_, dimension, type_.shape[type_.position(dimension)])
        for type_ in types
        for dimension in range(type_.rank if type_.rank > 1 else 0)
    ]
    assert root.result is not None
    return dict.fromkeys(split for split in splits if split is not None and split.count == root.result.count)


@dataclass(frozen=True, eq=False)
class _LoopSearch:
    """The search for loops in a block.

    Attributes:
        block: The operations of the block.
        limits: The conditions under which a loop pays.
        remarks: Receives what keeps operations out of loops.
        obstacles: The instructions that could not be moved to a loop.
    """

    block: BlockOperations
    limits: _ProfitLimits
    remarks: Remarks
    obstacles: list[Obstacle] = field(default_factory=list[Obstacle])

    def loops(self) -> list[FusedLoop]:
        """The loops that pay, in any order."""
        loops: list[FusedLoop] = []
        for root in self.block.roots:
            name = str(root.instruction.result)
            if name in self.block.live and _size(root) > self.limits.shared:
                for split in _splits(self.block, root):
                    if all(loop.group.splits.get(name) != split for loop in loops):
                        loops += self._loop_along(root, split)
        self._report_obstacles(loops)
        return loops

    def _report_obstacles(self, loops: Iterable[FusedLoop]) -> None:
        """Add a remark for each obstacle, unless the instruction is in another loop."""
        fused = {key for loop in loops for key in loop.placement.inside}
        for instruction, reason in self.obstacles:
            if id(instruction) not in fused:
                message = f"not fused into one loop with the surrounding operations, because {reason}"
                self.remarks.add("missed", STAGE, message, instruction.span)

    def _loop_along(self, root: TensorOp, split: Split) -> Iterator[FusedLoop]:
        """The loop over the parts of a result, if there is one that pays.

        Products that would read an operand again for each part only join where no loop pays without them: a loop over
        the heads of attention stays apart from the projections, whose columns are heads, too. The search begins at the
        result that is large enough for that.
        """
        limits = self.limits
        for whole, least in ((0, limits.shared), (limits.most_whole, limits.least_with_whole)):
            loop = self._with_limit(root, split, whole) if _size(root) > least else None
            if loop is not None:
                yield loop
                return

    def _with_limit(self, root: TensorOp, split: Split, whole: int) -> FusedLoop | None:
        """The loop over the parts of a result in which products read at most `whole` bytes as a whole."""
        limits = self.limits
        refused: set[int] = set()
        for _ in range(_MOST_ATTEMPTS):
            group = LoopGroup.grown(self.block, root, split, whole, refused)
            is_large = group is not None and group.has_products and group.internal and group.internal[0] > limits.shared
            factor = _best_factor(group, limits) if group is not None and is_large else None
            if group is None or factor is None or group.reads_views():
                return None
            placement = LoopPlacement(group)
            if placement.obstacle is None:
                return FusedLoop(group, placement, factor)
            self.obstacles.append(placement.obstacle)
            refused.add(id(placement.obstacle.instruction))
        return None


def _best_factor(group: LoopGroup, limits: _ProfitLimits) -> int | None:
    """How many parts an iteration computes; None if the loop does not pay."""
    fusion, largest = limits.fusion, group.internal[0]
    if not group.whole_bytes:
        return 1 if largest // group.parts >= fusion.min_part_bytes else None
    most_trips = (
        sum(group.internal) // group.whole_bytes // fusion.min_saved_per_reread_byte
        if fusion.min_saved_per_reread_byte
        else group.parts
    )
    least = max(fusion.min_rows, -(-group.parts // most_trips)) if most_trips else group.parts
    factors = [factor for factor in range(least, group.parts // 2 + 1) if group.parts % factor == 0]
    if factors and fusion.decision_seed is not None:
        return factors[fusion.decision_seed // 2 % len(factors)]
    if not factors or largest <= limits.least_with_whole or group.largest_output > largest // 2:
        return None
    fitting = [factor for factor in factors if _working_set(group, factor) <= limits.cache]
    return fitting[-1] if fitting else factors[0]


def _working_set(group: LoopGroup, factor: int) -> int:
    """Bytes of results that an iteration has to keep in a cache."""
    return sum(group.internal[:_LIVE_AT_ONCE]) * factor // group.parts
