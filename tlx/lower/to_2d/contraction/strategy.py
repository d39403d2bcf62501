"""The strategy of a contraction: as 2-D products or element by element, and where what reduces its result does so.

A convolution, 1 x 64 x 54 x 54, of which each channel's sum is wanted: the strategies, of which the cheapest is taken

    blocks reduced along      they leave        then reduced
    y and x                   64                             only where y and x are one dimension in the input
    x                         64 x 54           y
    y                         64 x 54           x
    nothing                   64 x 54 x 54      y and x

What is reduced are the columns of a block: all of such a dimension at once. If what blocks leave is not the result, it
is a temporary, in the order of the contraction's dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import Type, bits_of, bytes_of
from tlx.lower.memory.buffers import size_text
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.choose_blocking import choose_blocking
from tlx.lower.to_2d.contraction.cost import CALL_CYCLES, FOLDED_CYCLES, ComputeUnit
from tlx.lower.to_2d.contraction.depthwise import DepthwiseBlocking, choose_depthwise
from tlx.lower.to_2d.contraction.problem import ACC, LHS, OUT, Contraction, is_reduced, rounds_sums
from tlx.lower.to_2d.contraction.vnni_operands import has_dense_vnni_rows, with_vnni_rows, without_vnni_rows
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loops import LoopDim
from tlx.lower.to_2d.memory.copies import NEAR_BYTES
from tlx.lower.to_2d.reduction import WindowAxis
from tlx.target.target import Target

_WORSE: Final = 1.2
"""What an estimate is multiplied by where blocks reduce nothing: not all that memory costs is in it."""
_REDUCED: Final = 3.0
_REDUCED_FAR: Final = 6.0
"""Cycles to reduce a vector from a temporary, in the caches and outside."""


def best_blocking(
    target: Target, contraction: Contraction, element: Type
) -> tuple[Blocking | DepthwiseBlocking, float]:
    """The blocking with the fewest estimated cycles, and the estimate.

    Args:
        target: The machine to choose for.
        contraction: What to compute.
        element: Type of the sums.

    Raises:
        ValueError: There is none, because the columns of a block cannot hold all that is reduced.
    """
    found = _blockings(target, contraction, element)
    if not found:
        msg = f"no 2-D product for {contraction}"
        raise ValueError(msg)
    return min(found, key=lambda choice: choice[1])


def best_strategy(target: Target, contraction: Contraction, element: Type) -> ContractionStrategy:
    """The strategy with the fewest estimated cycles for a contraction whose result is reduced."""
    return min(_strategies(contraction), key=lambda strategy: _strategy_cycles(target, strategy, element))


def least_contraction_cycles(target: Target, contraction: Contraction, element: Type) -> float:
    """The estimated cycles of a contraction with sums of a type, under its best strategy."""
    strategies = _strategies(contraction) if contraction.reduces else [ContractionStrategy(contraction)]
    return min(_strategy_cycles(target, strategy, element) for strategy in strategies)


@dataclass(frozen=True)
class ContractionStrategy:
    """Where a contraction's result is reduced.

    Attributes:
        contraction: The contraction, which writes the result or a temporary.
        axes: How the temporary is reduced to the result; empty if there is no temporary.
    """

    contraction: Contraction
    axes: tuple[WindowAxis, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the blocks leave the result."""
        return not self.axes

    @property
    def count(self) -> int:
        """Elements of the temporary."""
        return math.prod(axis.reach for axis in self.axes)

    def remark(self, context: EmitContext, op: TensorOp, element: Type) -> None:
        """Say that there is a temporary, and why.

        Args:
            context: Target, temporaries and remarks.
            op: The reduction.
            element: Type of its elements.
        """
        reason = "its blocks hold a part of what is reduced" if self.contraction.reduces else "that takes less time"
        size = size_text(self.count * bytes_of(element))
        message = f"temporary of {size} between the product and {op.intrinsic.name}, because {reason}"
        context.remark_missed(message, op.instruction.span)


# Strategies ----------------------------------------------------------------------------------------------------------


def _strategies(c: Contraction) -> Iterator[ContractionStrategy]:
    """All strategies: everything reduced in blocks first, nothing last."""
    reduced = [index for index, walk in enumerate(_result_dims(c)) if is_reduced(walk)]
    yield ContractionStrategy(c)
    if len(reduced) > 1:
        yield from (_through_temporary(c, index) for index in reduced)
    yield _through_temporary(c, None)


def _result_dims(c: Contraction) -> list[LoopDim]:
    """The dimensions of the result."""
    return [*c.batch, *c.m, *c.n]


def _through_temporary(c: Contraction, inside: int | None) -> ContractionStrategy:
    """The strategy that reduces one dimension, or none, in blocks and the others from a dense temporary."""
    walks, axes = _result_dims(c), list[WindowAxis]()
    stride = 1
    for index, (extent, strides) in reversed(list(enumerate(walks))):
        step = 0 if index == inside else stride
        walks[index] = LoopDim(extent, _with_out(strides, step, alone=c.acc is None))
        if index == inside:
            continue
        stride *= extent
        window = extent if is_reduced(LoopDim(extent, strides)) else 1
        axes.insert(0, WindowAxis(extent // window, step, strides[OUT], window))
    first, second = len(c.batch), len(c.batch) + len(c.m)
    roles = (tuple(walks[part]) for part in (slice(first), slice(first, second), slice(second, None)))
    batch, m, n = roles
    return ContractionStrategy(replace(c, batch=batch, m=m, n=n), tuple(axes))


def _with_out(strides: tuple[int, ...], step: int, *, alone: bool) -> tuple[int, ...]:
    """The strides of a dimension with another one in the result, and in an accumulator that does not exist."""
    acc = step if alone else strides[ACC]
    return (*strides[LHS:OUT], step, acc, *strides[ACC + 1 :])


# Costs ---------------------------------------------------------------------------------------------------------------


def _blockings(
    target: Target, contraction: Contraction, element: Type
) -> list[tuple[Blocking | DepthwiseBlocking, float]]:
    """The candidates; if one reads interleaved rows in place, it is the only one."""
    unit = compute_unit(target, contraction, element)
    grouped = with_vnni_rows(contraction, target) if contraction.rhs.vnni_group == 1 else contraction
    blocks = None if grouped is None else choose_blocking(grouped, unit, narrow=rounds_sums(element))
    if blocks is not None:
        return [blocks]
    if contraction.rhs.vnni_group > 1 and not has_dense_vnni_rows(contraction):
        return []
    contraction = without_vnni_rows(contraction)
    blocks = choose_blocking(contraction, unit, narrow=rounds_sums(element))
    taps = choose_depthwise(contraction, unit.lanes)
    return [choice for choice in (blocks, taps) if choice is not None]


def _strategy_cycles(target: Target, way: ContractionStrategy, element: Type) -> float:
    """The estimated cycles of a strategy; infinite where it has no blocking."""
    cycles = min((cycles for _, cycles in _blockings(target, way.contraction, element)), default=math.inf)
    if way.is_whole:
        return cycles
    each = _REDUCED if way.count * bytes_of(element) <= NEAR_BYTES else _REDUCED_FAR
    results = math.prod(axis.extent for axis in way.axes)
    cycles += CALL_CYCLES + way.count / _lanes(target, element) * each + results * FOLDED_CYCLES
    return cycles if way.contraction.reduces else cycles * _WORSE


def compute_unit(target: Target, contraction: Contraction, element: Type) -> ComputeUnit:
    """The unit that multiplies a contraction with sums of a type."""
    target = replace(target, matrix=None) if contraction.ignore_matrix_unit else target
    return ComputeUnit.of(target, contraction.lhs.element, contraction.rhs.element, element)


def _lanes(target: Target, element: Type) -> int:
    """Sums that a vector register holds."""
    return target.vector_bytes * 8 // max(32, bits_of(element))
