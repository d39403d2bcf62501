"""Convolutions of undilated inputs: contractions on overlapping views of the input, or of a copy of it.

`rules.convolution` shows before and after, `convolution.layouts` the layouts of copies. A copy that does not fit into
the caches is made some rows at a time:

    x of 58 rows, 3 x 3 windows 2 apart, 28 rows of the result       part    rows of the result    rows of x
                                                                     0       0 to 6                0 to 14
                                                                     1       7 to 13               14 to 28
Rows at the border of two parts are copied for both parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import FLOAT, Type, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.views import StridedDim, TensorView
from tlx.lower.to_2d.contraction.blocking import Blocking
from tlx.lower.to_2d.contraction.emit import emit_contraction
from tlx.lower.to_2d.contraction.operand_copies import SlicedOperand, strided_view
from tlx.lower.to_2d.contraction.problem import LHS, RHS, OperandMemory
from tlx.lower.to_2d.contraction.strategy import best_blocking, compute_unit, least_contraction_cycles
from tlx.lower.to_2d.convolution.layouts import InputLayout, input_layouts
from tlx.lower.to_2d.convolution.operand_conversion import ReorderedCopy, WideOperands, cycles_of_narrow_operands
from tlx.lower.to_2d.convolution.problem import DenseConvolution
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loops import LoopDim
from tlx.lower.to_2d.memory.copies import NEAR_BYTES
from tlx.target.target import Target

_FILLED: Final = 2
"""Blocks fill one of so many parts of a tile along K, or less, where vectors are considered beside a matrix unit."""
_CLEARLY: Final = 0.7
"""Share of an estimate that another one must stay below where both count roughly what it takes to pack operands."""


def emit_convolution(context: EmitContext, b: TensorBuilder, op: TensorOp, problem: DenseConvolution) -> None:
    """Write a convolution, what happens to its sums included.

    Args:
        context: Target, temporaries and remarks.
        b: Where.
        op: The operation it is.
        problem: What to compute.
    """
    image, cycles = best_layout(context.target, problem, problem.result.element)
    if _is_faster_by_vectors(context.target, problem, image):
        emit_convolution(context, b, op, replace(problem, ignore_matrix_unit=True))
        return
    ordered = _depthwise_kernel_copy(context.target, problem, cycles)
    if ordered is not None:
        w = ordered.emit(context, b, op, "w", "its channels lie apart")
        emit_convolution(context, b, op, replace(problem, w=w))
        return
    wide = WideOperands.of(context.target, problem)
    if wide is not None:
        estimated = wide.estimated
        converted = wide.cycles + best_layout(context.target, estimated, FLOAT)[1]
        if converted < _CLEARLY * cycles_of_narrow_operands(context.target, problem, image):
            emit_convolution(context, b, op, wide.emit(context, b, op))
            return
    epilogue, element = problem.result.epilogue, problem.result.element
    if image is None:
        emit_contraction(context, b, op, problem.contraction, epilogue)
        return
    rows = InputRowBlocks.of(context, image, element)
    image = image if rows is None else rows.image
    x = problem.x
    type_ = TensorType.dense(x.element, image.extents)
    context.remark_copy(op, type_.element, type_.count, "x", image.reason)
    place = context.allocate(x.element, type_.count + image.slack_elements, image.name)
    target = TensorView.of(place, type_)
    contraction = image.contraction(OperandMemory(place.pointer, x.element))
    if rows is None:
        image.write(b, target)
        emit_contraction(context, b, op, contraction, epilogue)
    else:
        emit_contraction(context, b, op, contraction, epilogue, rows.parts(b, target))


def _is_faster_by_vectors(target: Target, problem: DenseConvolution, image: InputLayout | None) -> bool:
    """Whether blocks chosen for vectors beat those chosen for a matrix unit, whose tiles they would hardly fill.

    Blocks with few positions along K leave tiles almost empty, and vectors prefer other blocks: 14 pixels of
    3 x 3 x 3 x 16 bytes by 16 filters are 27 sums of 16 for tiles, but 9 of 48 for vectors, filters as columns.
    """
    element, first = problem.result.element, problem.contraction
    contraction = first if image is None else image.contraction(OperandMemory.of(problem.x))
    unit = compute_unit(target, contraction, element)
    if not unit.rows or first.ignore_matrix_unit or first.reduces:
        return False
    choice, _ = best_blocking(target, contraction, element)
    if not isinstance(choice, Blocking) or _FILLED * choice.k.extent > unit.k_step or choice.groups is not None:
        return False
    other = replace(problem, ignore_matrix_unit=True)
    best, _ = best_layout(target, other, element)
    return cycles_of_narrow_operands(target, other, best) < _CLEARLY * cycles_of_narrow_operands(
        target, problem, image, by_vectors=True
    )


def _depthwise_kernel_copy(target: Target, problem: DenseConvolution, cycles: float) -> ReorderedCopy | None:
    """The copy of a kernel of groups that has channels next to each other, where that takes fewer than so many cycles.

    Products of one filter and one channel read a row of it where the input has channels next to each other, too.
    """
    ordered = ReorderedCopy.of(problem.w, problem.tap_order) if problem.has_groups else None
    if ordered is None:
        return None
    copied = replace(problem, w=ordered.view(OperandMemory.of(problem.w)))
    return ordered if ordered.cycles + best_layout(target, copied, problem.result.element)[1] < cycles else None


def best_layout(target: Target, problem: DenseConvolution, element: Type) -> tuple[InputLayout | None, float]:
    """The copy of the input with the fewest estimated cycles, its making included; None: read in place."""
    memory, contraction = OperandMemory.of(problem.x), problem.contraction
    best, least = None, least_contraction_cycles(target, contraction, element)
    for image in input_layouts(problem, compute_unit(target, contraction, element)):
        cycles = least_contraction_cycles(target, image.contraction(memory), element)
        cycles += image.cycles()
        if cycles < least:
            best, least = image, cycles
    return best, least


_BLOCK_BYTES: Final = NEAR_BYTES // 2
"""Bytes of a part: filters are in the caches, too."""


@dataclass(frozen=True)
class InputRowBlocks:
    """A copy of the rows that some rows of the result need.

    Attributes:
        image: The copy of the first part.
        walk: From part to part: how many, and elements in the operands, the input for the copy, and the result.
    """

    image: InputLayout
    walk: LoopDim

    @classmethod
    def of(cls, context: EmitContext, image: InputLayout, element: Type) -> InputRowBlocks | None:
        """The parts of a copy; None where it is made at once.

        Args:
            context: Target, temporaries and remarks.
            image: The whole copy.
            element: Type of the sums.
        """
        problem = image.problem
        first, reduced = problem.channels, problem.contraction.reduces
        alone = context.threads == "none"  # threads that work on different parts have no copy in common
        if not alone or reduced or len(problem.windows.strides) < 2 or _layout_bytes(image) <= NEAR_BYTES:
            return None
        rows = problem.result.target.dims[first].extent
        for count in (count for count in range(2, rows + 1) if rows % count == 0):
            part = _first_rows(image, rows // count)
            if _layout_bytes(part) <= _BLOCK_BYTES:
                break
        else:
            return None
        if count * part.cycles() >= image.cycles() or not _reads_in_place(context.target, part, element):
            return None
        extent, strides = problem.contraction.n[1 if first else 0]
        return cls(part, LoopDim(count, tuple(stride * (extent // count) for stride in strides)))

    def parts(self, b: TensorBuilder, target: TensorView) -> SlicedOperand:
        """What makes the copy's parts, all in the same place."""
        problem = self.image.problem

        def write(offset: Value) -> None:
            start = b.gep(problem.x.element, problem.x.storage.pointer, offset)
            x = strided_view(OperandMemory(start, problem.x.element), problem.x.dims)
            replace(self.image, problem=replace(problem, x=x)).write(b, target)

        return SlicedOperand(RHS, [self.walk], write)


def _layout_bytes(image: InputLayout) -> int:
    return TensorType.dense(image.problem.x.element, image.extents).count * bytes_of(image.problem.x.element)


def _first_rows(image: InputLayout, count: int) -> InputLayout:
    """The copy of what the first rows of the result need."""
    problem = image.problem
    first, windows, result = problem.channels, problem.windows, problem.result
    reach = 1 + (problem.w.dims[first].extent - 1) * windows.kernel_steps[0]
    x = _restricted(problem.x, first, (count - 1) * windows.strides[0] + reach)
    part = replace(result, target=_restricted(result.target, first, count))
    return replace(image, problem=replace(problem, x=x, result=part))


def _restricted(view: TensorView, dimension: int, extent: int) -> TensorView:
    dims = [StridedDim(extent, dim.stride) if d == dimension else dim for d, dim in enumerate(view.dims)]
    return strided_view(OperandMemory.of(view), dims)


def _reads_in_place(target: Target, part: InputLayout, element: Type) -> bool:
    """Whether products read a part where it lies, and filters are not copied by parts of their own."""
    memory = OperandMemory.of(part.problem.x)
    contraction = part.contraction(memory)
    choice, _ = best_blocking(target, contraction, element)
    if not isinstance(choice, Blocking) or choice.sliced_operand is not None:
        return False
    return (LHS if choice.contraction.lhs == contraction.rhs else RHS) not in choice.copied
