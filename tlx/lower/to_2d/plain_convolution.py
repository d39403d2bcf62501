"""Convolutions of inputs without holes: contractions on overlapping views of the input, or of a copy of it.

`tlx.lower.to_2d.convolution` shows before and after, `tlx.lower.to_2d.images` which copies there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import FLOAT, Type
from tlx.lower.to_2d.block_choice import Blocking
from tlx.lower.to_2d.blocks import emit_contraction
from tlx.lower.to_2d.contraction import Memory
from tlx.lower.to_2d.convolution_problem import Problem
from tlx.lower.to_2d.image_rows import ImageRows
from tlx.lower.to_2d.images import Image, images_of
from tlx.lower.to_2d.reordered import Reordered, note_copy
from tlx.lower.to_2d.views import View
from tlx.lower.to_2d.ways import best_choice, least_cycles, unit_of
from tlx.lower.to_2d.wide_operands import WideOperands, narrow_cycles
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

_FILLED: Final = 2
"""Blocks fill one of so many parts of a tile along K, or less, where vectors are considered beside a matrix unit."""
_CLEARLY: Final = 0.7
"""Share of an estimate that another one must stay below where both count roughly what it takes to pack operands."""


def emit_convolution(plan: Plan, b: TensorBuilder, op: TensorOp, problem: Problem) -> None:
    """Write a convolution, what happens to its sums included.

    Args:
        plan: The plan of the function; it gives memory for copies.
        b: Where.
        op: The operation it is.
        problem: What to compute.
    """
    image, cycles = best_image(plan, problem, problem.result.element)
    if _is_faster_by_vectors(plan, problem, image):
        emit_convolution(plan, b, op, replace(problem, by_vectors=True))
        return
    ordered = _by_taps(plan, problem, cycles)
    if ordered is not None:
        w = ordered.emit(plan, b, op, "w", "its channels lie apart")
        emit_convolution(plan, b, op, replace(problem, w=w))
        return
    wide = WideOperands.of(plan, problem)
    if wide is not None:
        estimated = wide.estimated
        converted = wide.cycles + best_image(plan, estimated, FLOAT)[1]
        if converted < _CLEARLY * narrow_cycles(plan, problem, image):
            emit_convolution(plan, b, op, wide.emit(plan, b, op))
            return
    epilogue, element = problem.result.epilogue, problem.result.element
    if image is None:
        emit_contraction(plan, b, op, problem.contraction, epilogue)
        return
    rows = ImageRows.of(plan, image, element)
    image = image if rows is None else rows.image
    x = problem.x
    type_ = TensorType.dense(x.element, image.extents)
    note_copy(plan, op, type_, image.reason)
    place = plan.new_place(x.element, type_.count + image.behind, image.name)
    target = View.of(place, type_)
    contraction = image.contraction(Memory(place.pointer, x.element))
    if rows is None:
        image.write(b, target)
        emit_contraction(plan, b, op, contraction, epilogue)
    else:
        emit_contraction(plan, b, op, contraction, epilogue, rows.parts(b, target))


def _is_faster_by_vectors(plan: Plan, problem: Problem, image: Image | None) -> bool:
    """Whether blocks chosen for vectors are faster than those for a matrix unit, whose tiles they would hardly fill.

    The second stage multiplies blocks of few positions along K by vectors then, which like others better: 14 pixels of
    3 x 3 x 3 x 16 bytes by 16 filters are 27 sums of 16 for tiles, 9 of 48 for vectors, filters as columns.
    """
    element, first = problem.result.element, problem.contraction
    contraction = first if image is None else image.contraction(Memory.of(problem.x))
    unit = unit_of(plan, contraction, element)
    if not unit.rows or first.by_vectors or first.reduces:
        return False
    choice, _ = best_choice(plan, contraction, element)
    if not isinstance(choice, Blocking) or _FILLED * choice.k.extent > unit.step or choice.groups is not None:
        return False
    other = replace(problem, by_vectors=True)
    best, _ = best_image(plan, other, element)
    return narrow_cycles(plan, other, best) < _CLEARLY * narrow_cycles(plan, problem, image, by_vectors=True)


def _by_taps(plan: Plan, problem: Problem, cycles: float) -> Reordered | None:
    """The copy of a kernel of groups that has channels next to each other, where that takes fewer than so many cycles.

    Products of one filter and one channel read a row of it where the input has channels next to each other, too.
    """
    ordered = Reordered.of(problem.w, problem.tap_order) if problem.has_groups else None
    if ordered is None:
        return None
    copied = replace(problem, w=ordered.view(Memory.of(problem.w)))
    return ordered if ordered.cycles + best_image(plan, copied, problem.result.element)[1] < cycles else None


def best_image(plan: Plan, problem: Problem, element: Type) -> tuple[Image | None, float]:
    """The copy of the input that takes the fewest cycles, and these; its making is included. None: as it lies."""
    memory, contraction = Memory.of(problem.x), problem.contraction
    best, least = None, least_cycles(plan, contraction, element)
    for image in images_of(problem, unit_of(plan, contraction, element)):
        cycles = least_cycles(plan, image.contraction(memory), element)
        cycles += image.cycles()
        if cycles < least:
            best, least = image, cycles
    return best, least
