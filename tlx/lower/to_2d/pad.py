"""`llvm.tensor.pad`: a copy into a part of the result, and the value around it.

Rewrite of a row above and a column behind::

    %u = call <20 x float> @llvm.tensor.pad(token %t, <2 x i32> <i32 1, i32 0>, <2 x i32> <i32 0, i32 1>, float %s)
    ->
    %one = insertelement <1 x float> undef, float %s, i32 0                             ; %t is 3 x 4, %u 4 x 5
    ...
    store(%u.buf, broadcast(typeinfo(%one)))             1 x 5
    store(%u.buf + 9, broadcast(typeinfo(%one)))         3 x 1
    store(%u.buf + 5, load %t)                           3 x 4

Where elements are added between neighbours the whole result is filled first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.lower.to_2d.copies import box, copy, fill, part
from tlx.lower.to_2d.plan import Plan
from tlx.lower.to_2d.views import View


@dataclass(frozen=True)
class _Border:
    """One dimension: which elements of the operand are kept, and where they go.

    Attributes:
        first: The first element of the operand that is kept.
        count: How many are.
        at: Where the first goes.
        step: How far apart they go.
        extent: Extent of the result.
    """

    first: int
    count: int
    at: int
    step: int
    extent: int

    @classmethod
    def of(cls, extent: int, low: int, interior: int, result: int) -> _Border:
        step = interior + 1
        first = max(0, -(low // step))
        last = min(extent - 1, (result - 1 - low) // step)
        return cls(first, max(0, last - first + 1), low + first * step, step, result)

    @property
    def outside(self) -> list[tuple[int, int]]:
        """What lies before and behind the elements."""
        end = self.at + (self.count - 1) * self.step + 1
        return [(first, count) for first, count in ((0, self.at), (end, self.extent - end)) if count > 0]


def lower_pad(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the value, and what is kept of the operand, to `target`."""
    source = plan.view(op.tensors[0])
    low, interior = op.dims[0], op.dims[2] if len(op.dims) == 3 else (0,) * len(source.dims)
    numbers = zip(source.dims, low, interior, target.dims, strict=True)
    borders = [_Border.of(dim.extent, below, between, out.extent) for dim, below, between, out in numbers]
    kept = all(border.count > 0 for border in borders)
    if not kept or any(border.step > 1 and border.count > 1 for border in borders):
        fill(b, op.scalars[0], target)
    else:
        for ranges in _slabs(borders):
            fill(b, op.scalars[0], box(b, target, ranges))
    if kept:
        copy(b, box(b, source, [(border.first, border.count) for border in borders]), _spread(b, target, borders))


def _slabs(borders: Sequence[_Border]) -> list[list[tuple[int, int]]]:
    """What surrounds the elements, the outermost dimensions first, as boxes that do not overlap."""
    return [
        [
            *((border.at, border.count) for border in borders[:dimension]),
            outside,
            *((0, border.extent) for border in borders[dimension + 1 :]),
        ]
        for dimension in range(len(borders))
        for outside in borders[dimension].outside
    ]


def _spread(b: TensorBuilder, target: View, borders: Sequence[_Border]) -> View:
    """Where the elements go."""
    pairs = list(zip(borders, target.dims, strict=True))
    dims = [(border.count, dim.stride * border.step) for border, dim in pairs]
    return part(b, target, dims, sum(border.at * dim.stride for border, dim in pairs))
