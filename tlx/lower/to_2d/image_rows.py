"""Copies of a convolution's input, some of its rows at a time, where all of them do not stay in the caches.

    x of 58 rows, 3 x 3 windows 2 apart, 28 rows of the result       part    rows of the result    rows of x
                                                                     0       0 to 6                0 to 14
                                                                     1       7 to 13               14 to 28
Rows at the border of two parts are copied for both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.to_2d.block_choice import Blocking
from tlx.lower.to_2d.contraction import LHS, RHS, Memory
from tlx.lower.to_2d.copy_cost import NEAR_BYTES
from tlx.lower.to_2d.images import Image
from tlx.lower.to_2d.loops import Walk
from tlx.lower.to_2d.operand_copies import strided_view
from tlx.lower.to_2d.parts import Parts
from tlx.lower.to_2d.views import Dim, View
from tlx.lower.to_2d.ways import best_choice
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

_PART: Final = NEAR_BYTES // 2
"""Bytes of a part: filters are in the caches, too."""


@dataclass(frozen=True)
class ImageRows:
    """A copy of the rows that some rows of the result need.

    Attributes:
        image: The copy of the first part.
        walk: From part to part: how many, and elements in the operands, the input for the copy, and the result.
    """

    image: Image
    walk: Walk

    @classmethod
    def of(cls, plan: Plan, image: Image, element: Type) -> ImageRows | None:
        """The parts of a copy; None where it is made at once.

        Args:
            plan: The plan of the function.
            image: The whole copy.
            element: Type of the sums.
        """
        problem = image.problem
        first, reduced = problem.channels, problem.contraction.reduces
        alone = plan.context.threads == "none"  # threads that work on different parts have no copy in common
        if not alone or reduced or len(problem.windows.strides) < 2 or _size(image) <= NEAR_BYTES:
            return None
        rows = problem.result.target.dims[first].extent
        for count in (count for count in range(2, rows + 1) if rows % count == 0):
            part = _first_rows(image, rows // count)
            if _size(part) <= _PART:
                break
        else:
            return None
        if count * part.cycles() >= image.cycles() or not _reads_it(plan, part, element):
            return None
        extent, strides = problem.contraction.n[1 if first else 0]
        return cls(part, (count, tuple(stride * (extent // count) for stride in strides)))

    def parts(self, b: TensorBuilder, target: View) -> Parts:
        """What makes the copy's parts, all in the same place."""
        problem = self.image.problem

        def write(offset: Value) -> None:
            start = b.gep(problem.x.element, problem.x.place.pointer, offset)
            x = strided_view(Memory(start, problem.x.element), problem.x.dims)
            replace(self.image, problem=replace(problem, x=x)).write(b, target)

        return Parts(RHS, [self.walk], write)


def _size(image: Image) -> int:
    return TensorType.dense(image.problem.x.element, image.extents).count * bytes_of(image.problem.x.element)


def _first_rows(image: Image, count: int) -> Image:
    """The copy of what the first rows of the result need."""
    problem = image.problem
    first, windows, result = problem.channels, problem.windows, problem.result
    reach = 1 + (problem.w.dims[first].extent - 1) * windows.kernel_steps[0]
    x = _cut(problem.x, first, (count - 1) * windows.strides[0] + reach)
    part = replace(result, target=_cut(result.target, first, count))
    return replace(image, problem=replace(problem, x=x, result=part))


def _cut(view: View, dimension: int, extent: int) -> View:
    dims = [Dim(extent, dim.stride) if d == dimension else dim for d, dim in enumerate(view.dims)]
    return strided_view(Memory.of(view), dims)


def _reads_it(plan: Plan, part: Image, element: Type) -> bool:
    """Whether products read a part where it lies, and filters are not copied by parts of their own."""
    memory = Memory.of(part.problem.x)
    contraction = part.contraction(memory)
    choice, _ = best_choice(plan, contraction, element)
    if not isinstance(choice, Blocking) or choice.by_parts is not None:
        return False
    return (LHS if choice.contraction.lhs == contraction.rhs else RHS) not in choice.packed
