"""`llvm.tensor.convolution`: a contraction on overlapping views of the input, without copies of windows.

Rewrite of 1 x 64 x 56 x 56 with 64 x 64 x 3 x 3, the result 54 x 54::

    %y = call <186624 x float> @llvm.tensor.convolution(token %x, token %w)
    ->
    %lhs.buf = w as 3 x 3 x 64 x 64                          ; position, filter, channel: channels next to each other
    batch.loop:                                              ; 54 rows of the result
      y[:, row, :] = lhs.buf[0] @ x[:, row, 0:54]            ; 64 x 64 times 64 x 54
      k.loop:                                                ; the other 8 positions in the kernel
        y[:, row, :] += lhs.buf[i, j] @ x[:, row + i, j:j+54]

Positions in the kernel are dimensions that are added up, and walk through the input as positions of the result do. An
input with holes is copied first (into zeros); others are where that takes less time, `tlx.lower.to_2d.images` has how.
"""

from __future__ import annotations

from tlx.intrinsics.convolution import Windows, dilated
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import Type, bytes_of
from tlx.lower.to_2d.blocks import emit_contraction
from tlx.lower.to_2d.buffers import size_text
from tlx.lower.to_2d.contraction import Epilogue, Memory, Result
from tlx.lower.to_2d.convolution_problem import Problem
from tlx.lower.to_2d.copies import copy, fill_zero
from tlx.lower.to_2d.image_rows import ImageRows
from tlx.lower.to_2d.images import Image, images_of
from tlx.lower.to_2d.operand_copies import strided_view
from tlx.lower.to_2d.plan import STAGE, Plan
from tlx.lower.to_2d.views import Dim, View
from tlx.lower.to_2d.ways import least_cycles, unit_of
from tlx.types import TensorType


def lower_convolution(
    plan: Plan, b: TensorBuilder, op: TensorOp, target: View, epilogue: Epilogue | None = None
) -> None:
    """Write the cross-correlation of two tensors to `target`."""
    x, w = (plan.view(tensor) for tensor in op.tensors)
    windows = Windows.of(len(x.dims), op.dims)
    x = _with_holes(plan, b, op, x, windows)
    problem = Problem(x, w, windows, Result(target, None, epilogue))
    element = target.element if epilogue is None else epilogue.element
    image = _best_image(plan, problem, element)
    if image is None:
        emit_contraction(plan, b, op, problem.contraction, epilogue)
        return
    rows = ImageRows.of(plan, image, element)
    image = image if rows is None else rows.image
    type_ = TensorType.dense(x.element, image.extents)
    _remark(plan, op, type_, image.reason)
    place = plan.new_place(x.element, type_.count + image.behind, image.name)
    target = View.of(place, type_)
    contraction = image.contraction(Memory(place.pointer, x.element))
    if rows is None:
        image.write(b, target)
        emit_contraction(plan, b, op, contraction, epilogue)
    else:
        emit_contraction(plan, b, op, contraction, epilogue, rows.parts(b, target))


def _best_image(plan: Plan, problem: Problem, element: Type) -> Image | None:
    """The copy of the input that takes the fewest cycles, its making included; None for the input as it lies."""
    memory, contraction = Memory.of(problem.x), problem.contraction
    best, least = None, least_cycles(plan, contraction, element)
    for image in images_of(problem, unit_of(plan, contraction, element)):
        cycles = least_cycles(plan, image.contraction(memory), element)
        cycles += image.cycles()
        if cycles < least:
            best, least = image, cycles
    return best


def _remark(plan: Plan, op: TensorOp, type_: TensorType, reason: str) -> None:
    size = size_text(type_.count * bytes_of(type_.element))
    plan.context.remarks.add("missed", STAGE, f"copy of {size} of operand x, because {reason}", op.instruction.span)


def _with_holes(plan: Plan, b: TensorBuilder, op: TensorOp, x: View, windows: Windows) -> View:
    """The input with zeros between its elements, in a buffer, where it is dilated."""
    steps = (1,) * (len(x.dims) - len(windows.input_steps)) + windows.input_steps
    extents = [dilated(dim.extent, step) for dim, step in zip(x.dims, steps, strict=True)]
    if extents == [dim.extent for dim in x.dims]:
        return x
    type_ = TensorType.dense(x.element, extents)
    _remark(plan, op, type_, "it is dilated")
    whole = View.of(plan.new_place(x.element, type_.count, "dilated"), type_)
    fill_zero(b, whole)
    dims = [Dim(d.extent, t.stride * step) for d, t, step in zip(x.dims, whole.dims, steps, strict=True)]
    copy(b, x, strided_view(Memory.of(whole), dims))
    return whole
