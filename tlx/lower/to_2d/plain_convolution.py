"""Convolutions of inputs without holes: contractions on overlapping views of the input, or of a copy of it.

`tlx.lower.to_2d.convolution` shows before and after, `tlx.lower.to_2d.images` which copies there are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import FLOAT, Type
from tlx.lower.to_2d.blocks import emit_contraction
from tlx.lower.to_2d.contraction import Memory
from tlx.lower.to_2d.convolution_problem import Problem
from tlx.lower.to_2d.image_rows import ImageRows
from tlx.lower.to_2d.images import Image, images_of
from tlx.lower.to_2d.reordered import Reordered, note_copy
from tlx.lower.to_2d.views import View
from tlx.lower.to_2d.ways import least_cycles, unit_of
from tlx.lower.to_2d.wide_operands import WideOperands, narrow_cycles
from tlx.types import TensorType

if TYPE_CHECKING:
    from tlx.lower.to_2d.plan import Plan

_CLEARLY: Final = 0.7
"""Share of the cycles on narrow operands that float ones must stay below: the packing of either is a rough estimate."""


def emit_convolution(plan: Plan, b: TensorBuilder, op: TensorOp, problem: Problem) -> None:
    """Write a convolution, what happens to its sums included.

    Args:
        plan: The plan of the function; it gives memory for copies.
        b: Where.
        op: The operation it is.
        problem: What to compute.
    """
    image, cycles = best_image(plan, problem, problem.result.element)
    ordered = _by_taps(plan, problem, cycles)
    if ordered is not None:
        w = ordered.emit(plan, b, op, "w", "its channels lie apart")
        emit_convolution(plan, b, op, replace(problem, w=w))
        return
    wide = WideOperands.of(plan, problem)
    if wide is not None:
        estimated = wide.estimated
        converted = wide.cycles + best_image(plan, estimated, FLOAT)[1]
        if converted < _CLEARLY * narrow_cycles(plan, problem, image, cycles):
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
