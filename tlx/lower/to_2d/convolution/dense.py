"""Convolutions of undilated inputs: contractions on overlapping views of the input, or of a copy of it.

`rules.products` shows before and after, `convolution.problem` the layouts of copies. A copy that does not fit into
the caches is made some images, or some rows of an image, at a time (`InputBlocks`):

    x of 58 rows, 3 x 3 windows with stride 2, 28 rows of the result       block   rows of the result    rows of x
                                                                           0       0 to 6                0 to 14
                                                                           1       7 to 13               14 to 28
Rows that two blocks need are copied for both.

Convolutions of half or bfloat may have their operands converted to float first (`WideOperands`). Each 2-D product packs
registers of the right operand for dot products, or converts them if there are none; with overlapping windows and few
filters, that takes longer than the products::

    1 filter of 15 x 15, a row of 242 results       225 rows of 16 registers are packed, each for one product
    the input as float                              converted once, read in place

Sums are then float until they are rounded to the narrow type at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from tlx.intrinsics.convolution import dilated
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import FLOAT, HALF, I64, Type, VectorType, bytes_of
from tlx.ir.values import ConstInt, Value
from tlx.lower.memory.views import StridedDim, TensorView, without_unit_dims
from tlx.lower.to_2d.analysis.tensor_operations import STAGE
from tlx.lower.to_2d.contraction.blocking import Blocking, blocking_cycles, narrow_packing_cycles, unit_of_blocks
from tlx.lower.to_2d.contraction.depthwise import DepthwiseBlocking
from tlx.lower.to_2d.contraction.emit import emit_contraction
from tlx.lower.to_2d.contraction.problem import (
    LHS,
    RHS,
    ContractionEpilogue,
    ContractionResult,
    EpilogueOperand,
    OperandMemory,
    rounds_sums,
    strided_view,
)
from tlx.lower.to_2d.contraction.slices import SlicedOperand
from tlx.lower.to_2d.contraction.strategy import best_blocking, compute_unit, least_contraction_cycles
from tlx.lower.to_2d.convolution.edges import EdgeRegions
from tlx.lower.to_2d.convolution.problem import DenseConvolution, InputLayout, input_layouts
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loop_nests import LoopDim, loop_nest
from tlx.lower.to_2d.memory.copies import convert, copy, copy_cycles, fill
from tlx.lower.to_2d.memory.padding import PaddedDim, PaddedSource
from tlx.target.target import Target


def emit_convolution(context: EmitContext, b: TensorBuilder, op: TensorOp, problem: DenseConvolution) -> None:
    """Write a convolution with its epilogue.

    Args:
        context: Target, temporaries and remarks.
        b: The builder.
        op: The operation that is lowered.
        problem: The convolution.
    """
    source = choose_source(context.target, problem)
    problem = source.problem
    if source.kernel is not None:
        w = source.kernel.emit(context, b, op, "w", "its channels are not contiguous")
        emit_convolution(context, b, op, replace(problem, w=w))
        return
    if source.wide is not None:
        emit_convolution(context, b, op, source.wide.emit(context, b, op))
        return
    if source.edges is not None:
        count = len(source.edges.boxes)
        message = f"{count} regions of the result, because its border is not in memory: the inner one reads x in place"
        context.remarks.add("applied", STAGE, message, op.instruction.span)
        for region in source.edges.convolutions(b):
            emit_convolution(context, b, op, region)
        return
    epilogue, element, image = problem.result.epilogue, problem.result.element, source.image
    if image is None:
        emit_contraction(context, b, op, _with_border(context, b, op, problem).contraction, epilogue)
        return
    blocks = InputBlocks.of(context, image, element)
    image = image if blocks is None else blocks.image
    x = problem.x
    type_ = TensorType.dense(x.element, image.extents)
    context.remark_copy(op, type_.element, type_.count, "x", image.reason)
    place = context.allocate(x.element, type_.count + image.slack_elements, image.name)
    destination = TensorView.of(place, type_)
    contraction = image.contraction(OperandMemory(place.pointer, x.element))
    if blocks is None:
        image.write(b, destination)
        emit_contraction(context, b, op, contraction, epilogue)
    else:
        emit_contraction(context, b, op, contraction, epilogue, blocks.sliced(b, destination))


def _with_border(context: EmitContext, b: TensorBuilder, op: TensorOp, problem: DenseConvolution) -> DenseConvolution:
    """The convolution that reads its input in place, whose border is written to memory first if it is not there."""
    if problem.padding is None:
        return problem
    count = math.prod(dim.extent for dim in problem.x.dims)
    place = context.allocate_copy(op, problem.x.element, count, "x", "its border is not in memory")
    x = strided_view(OperandMemory(place.pointer, problem.x.element), problem.x.dims)
    problem.copy_input(b, x)
    return replace(problem, x=x, padding=None)


@dataclass(frozen=True)
class ConvolutionSource:
    """What a convolution reads: its operands, or copies of them.

    Attributes:
        problem: The convolution.
        kernel: The copy of the kernel that is made before anything else is decided.
        wide: The copies of both operands as float, which are made then.
        edges: The regions of the result whose windows reach the border, or do not, each a convolution of its own.
        image: The copy of the input; None: it is read in place.
    """

    problem: DenseConvolution
    kernel: ReorderedCopy | None = None
    wide: WideOperands | None = None
    edges: EdgeRegions | None = None
    image: InputLayout | None = None


def choose_source(target: Target, problem: DenseConvolution) -> ConvolutionSource:
    """What a convolution reads in the fewest estimated cycles, including copies."""
    image, cycles = best_layout(target, problem, problem.result.element)
    if _is_faster_by_vectors(target, problem, image):
        return choose_source(target, replace(problem, ignore_matrix_unit=True))
    kernel = _depthwise_kernel_copy(target, problem, cycles)
    if kernel is not None:
        return ConvolutionSource(problem, kernel=kernel)
    wide = WideOperands.of(target, problem)
    if wide is not None:
        converted = wide.cycles(target) + best_layout(target, wide.estimated, FLOAT)[1]
        if converted < target.block_costs.convolutions.max_alternative_share * cycles_of_narrow_operands(
            target, problem, image
        ):
            return ConvolutionSource(problem, wide=wide)
    edges = None if target.grid is not None else EdgeRegions.of(problem)  # a region would be launches of its own
    if edges is not None and _edges_cycles(target, edges) < cycles:
        return ConvolutionSource(problem, edges=edges)
    return ConvolutionSource(problem, image=image)


def copies_input(target: Target, problem: DenseConvolution) -> bool:
    """Whether a convolution reads a copy of its input."""
    source = choose_source(target, problem)
    if source.kernel is not None:
        w = source.kernel.view(OperandMemory.of(problem.w))
        return copies_input(target, replace(source.problem, w=w))
    return source.wide is not None or source.edges is not None or source.image is not None


def _edges_cycles(target: Target, edges: EdgeRegions) -> float:
    """The estimated cycles of all regions of a convolution's result, including copies."""
    return sum(best_layout(target, region, region.result.element)[1] for region in edges.convolutions())


def _is_faster_by_vectors(target: Target, problem: DenseConvolution, image: InputLayout | None) -> bool:
    """Whether blocks chosen for vectors are faster than those chosen for a matrix unit whose tiles they hardly fill.

    Blocks with few positions along K leave tiles almost empty, and vectors prefer other blocks: 14 pixels of
    3 x 3 x 3 x 16 bytes by 16 filters are 27 sums of 16 for tiles, but 9 of 48 for vectors, with filters as columns.
    """
    element, first = problem.result.element, problem.contraction
    contraction = first if image is None else image.contraction(OperandMemory.of(problem.x))
    unit = compute_unit(target, contraction, element)
    if not unit.rows or first.ignore_matrix_unit or first.reduces:
        return False
    choice, _ = best_blocking(target, contraction, element)
    if (
        not isinstance(choice, Blocking)
        or unit.costs.convolutions.sparse_tile_divisor * choice.k.extent > unit.k_step
        or choice.groups is not None
    ):
        return False
    other = replace(problem, ignore_matrix_unit=True)
    best, _ = best_layout(target, other, element)
    return cycles_of_narrow_operands(
        target, other, best
    ) < target.block_costs.convolutions.max_alternative_share * cycles_of_narrow_operands(
        target, problem, image, by_vectors=True
    )


def _depthwise_kernel_copy(target: Target, problem: DenseConvolution, cycles: float) -> ReorderedCopy | None:
    """The copy of a grouped kernel with contiguous channels, if that takes less than `cycles`; None otherwise.

    Products of one filter and one channel read a row of it if the input has contiguous channels, too.
    """
    ordered = ReorderedCopy.of(problem.w, problem.spatial_first) if problem.has_groups else None
    if ordered is None:
        return None
    copied = replace(problem, w=ordered.view(OperandMemory.of(problem.w)))
    return ordered if ordered.cycles(target) + best_layout(target, copied, problem.result.element)[1] < cycles else None


def best_layout(target: Target, problem: DenseConvolution, element: Type) -> tuple[InputLayout | None, float]:
    """The copy of the input with the fewest estimated cycles, including making it; None: read the input in place."""
    memory, contraction = OperandMemory.of(problem.x), problem.contraction
    best, least = None, least_contraction_cycles(target, contraction, element)
    if problem.padding is not None:
        least += copy_cycles(_in_memory_order(problem.x), problem.x.element, target)
    for image in input_layouts(problem, compute_unit(target, contraction, element)):
        cycles = least_contraction_cycles(target, image.contraction(memory), element)
        cycles += image.cycles(target)
        if cycles < least or (best is None and cycles == least):  # a copy may be made in parts, a pad is made at once
            best, least = image, cycles
    return best, least


def _in_memory_order(view: TensorView) -> list[StridedDim[int]]:
    """The dimensions of a view, those with the largest strides first."""
    return sorted(view.dims, key=lambda dim: dim.stride, reverse=True)


@dataclass(frozen=True)
class InputBlocks:
    """Copies of the images, or of the input rows, that blocks of the result need, made one after the other.

    Attributes:
        image: The copy for the first block.
        images, rows: The loops over blocks of images and of rows, with strides in the operands (for the copy, in the
            input) and in the result; None if there is no such loop.
    """

    image: InputLayout
    images: LoopDim | None = None
    rows: LoopDim | None = None

    @classmethod
    def of(cls, context: EmitContext, image: InputLayout, element: Type) -> InputBlocks | None:
        """The copies that replace a whole copy; None if that is made at once.

        Args:
            context: Target, temporaries and remarks.
            image: The whole copy.
            element: Type of the sums.
        """
        costs = context.target.block_costs.convolutions
        alone = context.threads == "none"  # threads cannot share the buffer of a block
        if not alone or image.problem.contraction.reduces or _layout_bytes(image) <= costs.max_whole_copy_bytes:
            return None
        whole = cls(image)
        by_images = whole.of_images(costs.max_partial_copy_bytes)
        candidates = [by_images.of_rows(context.target, costs.max_partial_copy_bytes), by_images]
        for blocks in (c for c in candidates if c is not None and c is not whole):
            if _reads_in_place(context.target, blocks.image, element):
                return blocks
        return None

    def of_images(self, most: int) -> InputBlocks:
        """The copies of as many images as take at most some bytes, or of single ones."""
        problem = self.image.problem
        if not problem.channels:
            return self
        count = problem.x.dims[0].extent
        parts = (_first_images(self.image, n) for n in range(count, 0, -1) if count % n == 0)
        block = next((part for part in parts if _layout_bytes(part) <= most), _first_images(self.image, 1))
        number = block.problem.x.dims[0].extent
        if number == count:
            return self
        _, (lhs, _, *others) = problem.contraction.n[0]
        read = problem.input.dims[0].stride
        return replace(
            self, image=block, images=LoopDim(count // number, tuple(n * number for n in (lhs, read, *others)))
        )

    def of_rows(self, target: Target, most: int) -> InputBlocks | None:
        """The copies of as many rows as take at most some bytes; None if there are none, or they take longer."""
        image, problem = self.image, self.image.problem
        first = problem.channels
        if len(problem.windows.strides) < 2 or _layout_bytes(image) <= most:
            return None
        padding = problem.padding
        if padding is not None and padding.dims[0].extent > 1 and image.slack_elements:
            return None  # what a row of an image writes past its end is not overwritten by the next row
        extent = problem.result.destination.dims[first].extent
        for count in (count for count in range(2, extent + 1) if extent % count == 0):
            block = _first_rows(image, extent // count)
            if _layout_bytes(block) <= most:
                break
        else:
            return None
        if count * block.cycles(target) >= image.cycles(target):
            return None
        _, (lhs, _, *others) = problem.contraction.n[1 if first else 0]
        read = problem.input.dims[first].stride * problem.windows.strides[0]
        rows = LoopDim(count, tuple(stride * (extent // count) for stride in (lhs, read, *others)))
        last_block = (count - 1) * rows.strides[RHS]
        if padding is not None and self.images is not None and padding.data.dims[0].stride <= last_block:
            return None  # offsets do not tell which image they are in: the last rows may be in the border below it
        return replace(self, image=block, rows=rows)

    def sliced(self, b: TensorBuilder, destination: TensorView) -> SlicedOperand:
        """The copies as slices of the right operand, which share one buffer."""
        problem = self.image.problem
        padding, source = problem.padding, problem.input

        def write(offset: Value) -> None:
            start = b.gep(source.element, source.storage.pointer, offset)
            part = strided_view(OperandMemory(start, source.element), source.dims)
            moved = (
                replace(problem, x=part) if padding is None else replace(problem, padding=replace(padding, data=part))
            )
            replace(self.image, problem=moved).write(b, destination)

        loops = [loop for loop in (self.images, self.rows) if loop is not None]
        if padding is None or self.rows is None:
            return SlicedOperand(RHS, loops, write)
        return SlicedOperand(RHS, loops, lambda offset: self._write_padded(b, destination, padding, offset))

    def _write_padded(self, b: TensorBuilder, destination: TensorView, padding: PaddedSource, offset: Value) -> None:
        """Write a block of rows one by one: those of the input are copied, the others are in the border."""
        image, first = self.image, self.image.problem.channels
        stride, within = padding.data.dims[first].stride, padding.dims[first]
        to = destination.dims[image.row_dim]
        dims = [StridedDim(1, dim.stride) if d == image.row_dim else dim for d, dim in enumerate(destination.dims)]
        data, in_image = padding.data.storage.pointer, offset
        if self.images is not None:
            in_image = b.binary("urem", offset, ConstInt(I64, padding.data.dims[0].stride))
            data = b.gep(destination.element, data, b.sub(offset, in_image))
        start = b.sub(in_image, ConstInt(I64, within.at * stride))
        rows = LoopDim(image.problem.x.dims[first].extent, (stride, to.stride))
        with loop_nest(b, [rows], 2, "row") as (row, there):
            position = b.add(start, row)
            at = OperandMemory(b.gep(destination.element, destination.storage.pointer, there), destination.element)
            line = strided_view(at, dims)
            is_inside = b.icmp("ult", position, within.count * stride)
            inside, border = b.if_else_blocks(is_inside, ("inside", "border"))
            after = b.new_block("row.end", border)
            b.at_end(inside)
            source = b.gep(destination.element, data, position)
            replace(image, problem=image.problem.row(source)).write(b, line)
            b.branch(after)
            b.at_end(border)
            fill(b, padding.value, line)
            b.branch(after)
            b.at_end(after)


def _layout_bytes(image: InputLayout) -> int:
    return TensorType.dense(image.problem.x.element, image.extents).count * bytes_of(image.problem.x.element)


def _first_images(image: InputLayout, count: int) -> InputLayout:
    """The copy of the first images."""
    problem = image.problem
    destination = _restricted(problem.result.destination, 0, count)
    block = replace(
        problem, x=_restricted(problem.x, 0, count), result=replace(problem.result, destination=destination)
    )
    padding = problem.padding
    if padding is not None:
        dims = (PaddedDim(0, count, 0, 1, count), *padding.dims[1:])
        block = replace(block, padding=replace(padding, data=_restricted(padding.data, 0, count), dims=dims))
    return replace(image, problem=block)


def _first_rows(image: InputLayout, count: int) -> InputLayout:
    """The copy of the input rows that the first rows of the result need."""
    problem = image.problem
    first, windows, result = problem.channels, problem.windows, problem.result
    reach = dilated(problem.w.dims[first].extent, windows.kernel_steps[0])
    x = _restricted(problem.x, first, (count - 1) * windows.strides[0] + reach)
    block = replace(result, destination=_restricted(result.destination, first, count))
    return replace(image, problem=replace(problem, x=x, result=block))


def _restricted(view: TensorView, dimension: int, extent: int) -> TensorView:
    dims = [StridedDim(extent, dim.stride) if d == dimension else dim for d, dim in enumerate(view.dims)]
    return strided_view(OperandMemory.of(view), dims)


def _reads_in_place(target: Target, image: InputLayout, element: Type) -> bool:
    """Whether products read a copy of the input in place, and filters are not copied slice by slice."""
    memory = OperandMemory.of(image.problem.x)
    contraction = image.contraction(memory)
    choice, _ = best_blocking(target, contraction, element)
    if isinstance(choice, DepthwiseBlocking):
        return True
    if choice.sliced_operand(target.block_costs.cached_operand_bytes) is not None:
        return False
    return (LHS if choice.contraction.lhs == contraction.rhs else RHS) not in choice.copied


class ReorderedCopy(NamedTuple):
    """A copy of a whole operand, with dimensions in another order or with wider elements.

    Attributes:
        source: The operand.
        order: Its dimensions in the copy, outermost first.
        element: Type of the copy's elements.
    """

    source: TensorView
    order: tuple[int, ...]
    element: Type

    @classmethod
    def of(cls, source: TensorView, order: Sequence[int]) -> ReorderedCopy | None:
        """A copy in an order; None if the operand has that order already."""
        copied = cls(source, tuple(order), source.element)
        return (
            None
            if without_unit_dims(copied.view(OperandMemory.of(source)).dims) == without_unit_dims(source.dims)
            else copied
        )

    @classmethod
    def widened(cls, source: TensorView, element: Type) -> ReorderedCopy:
        """A copy with wider elements, with its dimensions in memory order."""
        dims = source.dims
        return cls(source, tuple(sorted(range(len(dims)), key=lambda d: dims[d].stride, reverse=True)), element)

    @property
    def type(self) -> TensorType:
        """The copy's type."""
        return TensorType.dense(self.element, [self.source.dims[d].extent for d in self.order])

    def view(self, memory: OperandMemory) -> TensorView:
        """The copy with its dimensions in the operand's order."""
        strides = dict(zip(self.order, self.type.strides(), strict=True))
        dims = [StridedDim(dim.extent, strides[d]) for d, dim in enumerate(self.source.dims)]
        return strided_view(memory._replace(element=self.element), dims)

    def cycles(self, target: Target) -> float:
        """The estimated cycles of the copy."""
        return copy_cycles([self.source.dims[d] for d in self.order], self.element, target)

    def emit(
        self,
        context: EmitContext,
        b: TensorBuilder,
        op: TensorOp,
        name: str,
        reason: str,
        padding: PaddedSource | None = None,
    ) -> TensorView:
        """Write the copy.

        Args:
            context: Target, temporaries and remarks.
            b: The builder.
            op: The operation that reads the operand.
            name: The operand's name.
            reason: Why it is copied.
            padding: What is copied, if the operand has a border that is not in memory.
        """
        place = context.allocate_copy(op, self.element, self.type.count, name, reason)
        destination = self.view(OperandMemory(place.pointer, self.element))
        write = copy if self.element == self.source.element else convert
        if padding is not None:
            padding.converted(b, self.element).write(b, destination, write)
        else:
            write(b, self.source.row_major, destination)
        return destination


@dataclass(frozen=True)
class WideOperands:
    """Copies of a convolution's operands as float.

    Attributes:
        problem: The convolution.
        x, w: The copies.
    """

    problem: DenseConvolution
    x: ReorderedCopy
    w: ReorderedCopy

    @classmethod
    def of(cls, target: Target, problem: DenseConvolution) -> WideOperands | None:
        """The copies that may pay; None if there is nothing to convert, or loads convert."""
        elements = problem.x.element, problem.w.element
        if not all(map(rounds_sums, elements)) or (HALF in elements and target.narrow_floats.converts_half):
            return None
        if problem.contraction.reduces:
            return None
        return cls(problem, ReorderedCopy.widened(problem.x, FLOAT), ReorderedCopy.widened(problem.w, FLOAT))

    def cycles(self, target: Target) -> float:
        """The estimated cycles of the copies, and of reading wider elements."""
        return target.block_costs.convolutions.widening_factor * (self.x.cycles(target) + self.w.cycles(target))

    @property
    def estimated(self) -> DenseConvolution:
        """The convolution that reads the copies, for estimates."""
        x, w = (copied.view(OperandMemory.of(copied.source)) for copied in (self.x, self.w))
        return replace(self.problem, x=x, w=w, result=_rounding_result(self.problem.result))

    def emit(self, context: EmitContext, b: TensorBuilder, op: TensorOp) -> DenseConvolution:
        """Write the copies; returns the convolution that reads them."""
        reason = "it would be converted for each product"
        x = self.x.emit(context, b, op, "x", reason, self.problem.padding)
        w = self.w.emit(context, b, op, "w", reason)
        return replace(self.problem, x=x, w=w, padding=None, result=_rounding_result(self.problem.result))


def cycles_of_narrow_operands(
    target: Target, problem: DenseConvolution, image: InputLayout | None, *, by_vectors: bool = False
) -> float:
    """The estimated cycles of a convolution with narrow operands, including packing them.

    Args:
        target: The machine to choose for.
        problem: The convolution.
        image: The copy of its input.
        by_vectors: Whether vectors multiply the blocks, even blocks chosen for a matrix unit.
    """
    contraction = problem.contraction if image is None else image.contraction(OperandMemory.of(problem.x))
    element, copying = problem.result.element, 0.0 if image is None else image.cycles(target)
    choice, cycles = best_blocking(target, contraction, element)
    if not isinstance(choice, Blocking):
        return copying + cycles
    unit = compute_unit(target, replace(contraction, ignore_matrix_unit=True) if by_vectors else contraction, element)
    share = 1.0 if unit_of_blocks(choice, unit).rows else unit.dot_share
    return copying + blocking_cycles(choice, unit) * share + narrow_packing_cycles(choice, unit)


def _rounding_result(result: ContractionResult) -> ContractionResult:
    """A result with sums in float, which are rounded before the epilogue if they were narrower."""
    element, inner = result.element, result.epilogue
    if not rounds_sums(element):
        return result

    def emit(b: TensorBuilder, vector: Value, rows: int, cols: int, leaves: Sequence[EpilogueOperand]) -> Value:
        rounded = b.cast("fptrunc", vector, VectorType(rows * cols, element))
        return rounded if inner is None else inner.emit(b, rounded, rows, cols, leaves)

    strides, alone = ((), True) if inner is None else (inner.strides, inner.may_use_destination)
    return replace(result, epilogue=ContractionEpilogue(strides, FLOAT, emit, alone))
