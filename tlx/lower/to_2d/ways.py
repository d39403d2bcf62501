"""How a contraction is done: as 2-D products or element by element, and where what reduces its result does so.

A convolution, 1 x 64 x 54 x 54, of which each channel's sum is wanted: the ways, of which the cheapest is taken

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
from typing import TYPE_CHECKING, Final

from tlx.ir.tensors import TensorOp
from tlx.ir.types import Type, bits_of, bytes_of
from tlx.lower.to_2d.block_choice import Blocking
from tlx.lower.to_2d.block_cost import CALL, FOLDED
from tlx.lower.to_2d.blocking import choose, is_narrow
from tlx.lower.to_2d.buffers import size_text
from tlx.lower.to_2d.contraction import ACC, LHS, OUT, Contraction, is_reduced
from tlx.lower.to_2d.copy_cost import NEAR_BYTES
from tlx.lower.to_2d.loops import Walk
from tlx.lower.to_2d.plan import STAGE
from tlx.lower.to_2d.taps import Taps, choose_taps
from tlx.lower.to_2d.unit import Unit
from tlx.lower.to_2d.vnni import has_dense_groups, with_groups, without_groups
from tlx.lower.to_2d.windows import Axis

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

_WORSE: Final = 1.2
"""What an estimate is multiplied by where blocks reduce nothing: not all that memory costs is in it."""
_REDUCED: Final = 3.0
_REDUCED_FAR: Final = 6.0
"""Cycles to reduce a vector from a temporary, in the caches and outside."""


def best_choice(plan: Plan, contraction: Contraction, element: Type) -> tuple[Blocking | Taps, float]:
    """How to write a contraction whose sums are of a type, and an estimate of the cycles it takes.

    Raises:
        ValueError: There is no way: columns of blocks cannot hold what is reduced.
    """
    found = _choices(plan, contraction, element)
    if not found:
        msg = f"no 2-D product for {contraction}"
        raise ValueError(msg)
    return min(found, key=lambda choice: choice[1])


def best_way(plan: Plan, contraction: Contraction, element: Type) -> Way:
    """The way that takes the fewest cycles, of a contraction whose result is reduced."""
    return min(_ways(contraction), key=lambda way: _way_cycles(plan, way, element))


def least_cycles(plan: Plan, contraction: Contraction, element: Type) -> float:
    """About how many cycles a contraction takes, whose sums are of a type."""
    ways = _ways(contraction) if contraction.reduces else [Way(contraction)]
    return min(_way_cycles(plan, way, element) for way in ways)


@dataclass(frozen=True)
class Way:
    """A way.

    Attributes:
        contraction: What is written: to the result, or to a temporary.
        axes: How the temporary is reduced to the result; none if there is no temporary.
    """

    contraction: Contraction
    axes: tuple[Axis, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the blocks leave the result."""
        return not self.axes

    @property
    def count(self) -> int:
        """Elements of the temporary."""
        return math.prod(axis.reach for axis in self.axes)

    def remark(self, plan: Plan, op: TensorOp, element: Type) -> None:
        """Say that there is a temporary, and why.

        Args:
            plan: The plan of the function.
            op: The reduction.
            element: Type of its elements.
        """
        reason = "its blocks hold a part of what is reduced" if self.contraction.reduces else "that takes less time"
        size = size_text(self.count * bytes_of(element))
        message = f"temporary of {size} between the product and {op.intrinsic.name}, because {reason}"
        plan.context.remarks.add("missed", STAGE, message, op.instruction.span)


# Ways ----------------------------------------------------------------------------------------------------------------


def _ways(c: Contraction) -> Iterator[Way]:
    """All ways; all that is reduced together first, nothing last."""
    reduced = [index for index, walk in enumerate(_walks(c)) if is_reduced(walk)]
    yield Way(c)
    if len(reduced) > 1:
        yield from (_through_temporary(c, index) for index in reduced)
    yield _through_temporary(c, None)


def _walks(c: Contraction) -> list[Walk]:
    """The dimensions of the result."""
    return [*c.batch, *c.m, *c.n]


def _through_temporary(c: Contraction, inside: int | None) -> Way:
    """The way that reduces one dimension in the blocks, or none, and the others from a dense temporary."""
    walks, axes = _walks(c), list[Axis]()
    stride = 1
    for index, (extent, strides) in reversed(list(enumerate(walks))):
        step = 0 if index == inside else stride
        walks[index] = extent, _with_out(strides, step, alone=c.acc is None)
        if index == inside:
            continue
        stride *= extent
        window = extent if is_reduced((extent, strides)) else 1
        axes.insert(0, Axis(extent // window, step, strides[OUT], window))
    first, second = len(c.batch), len(c.batch) + len(c.m)
    roles = (tuple(walks[part]) for part in (slice(first), slice(first, second), slice(second, None)))
    batch, m, n = roles
    return Way(replace(c, batch=batch, m=m, n=n), tuple(axes))


def _with_out(strides: tuple[int, ...], step: int, *, alone: bool) -> tuple[int, ...]:
    """The strides of a dimension with another one in the result, and in an accumulator that does not exist."""
    acc = step if alone else strides[ACC]
    return (*strides[LHS:OUT], step, acc, *strides[ACC + 1 :])


# Costs ---------------------------------------------------------------------------------------------------------------


def _choices(plan: Plan, contraction: Contraction, element: Type) -> list[tuple[Blocking | Taps, float]]:
    """The choices; only that which reads an operand's interleaved rows as they lie, if there is one."""
    unit = unit_of(plan, contraction, element)
    target = plan.context.target_of(plan.module, plan.function)
    grouped = with_groups(contraction, target) if contraction.rhs.group == 1 else contraction
    blocks = None if grouped is None else choose(grouped, unit, narrow=is_narrow(element))
    if blocks is not None:
        return [blocks]
    if contraction.rhs.group > 1 and not has_dense_groups(contraction):
        return []
    contraction = without_groups(contraction)
    blocks = choose(contraction, unit, narrow=is_narrow(element))
    taps = choose_taps(contraction, unit.lanes)
    return [choice for choice in (blocks, taps) if choice is not None]


def _way_cycles(plan: Plan, way: Way, element: Type) -> float:
    """About how many cycles a way takes; infinitely many if it is none."""
    cycles = min((cycles for _, cycles in _choices(plan, way.contraction, element)), default=math.inf)
    if way.is_whole:
        return cycles
    each = _REDUCED if way.count * bytes_of(element) <= NEAR_BYTES else _REDUCED_FAR
    results = math.prod(axis.extent for axis in way.axes)
    cycles += CALL + way.count / _lanes(plan, element) * each + results * FOLDED
    return cycles if way.contraction.reduces else cycles * _WORSE


def unit_of(plan: Plan, contraction: Contraction, element: Type) -> Unit:
    """What multiplies a contraction whose sums are of a type."""
    target = plan.context.target_of(plan.module, plan.function)
    target = replace(target, matrix=None) if contraction.by_vectors else target
    return Unit.of(target, contraction.lhs.element, contraction.rhs.element, element)


def _lanes(plan: Plan, element: Type) -> int:
    """Sums that a vector register holds."""
    target = plan.context.target_of(plan.module, plan.function)
    return target.vector_bytes * 8 // max(32, bits_of(element))
