"""Reductions of windows and whole dimensions, in passes of one of two kinds of 2-D trees.

`reduce_unrolled`, for windows of few elements. The tree loads the block at each position of the window and combines
them::

    %a = tovector(load %x, <R, C>)        %b = tovector(load %x + 1, <R, C>)        ...
    %v = fadd <R*C x float> %a, %b
    store(%y, typeinfo(%v))

`reduce_by_lines`, for one dimension of the window, of any length, together with one of the result::

    %v = call <R x float> @llvm.tensor.reduce.add(token typeinfo(tovector(load %x, <R, W>)), <1, W>, <1, 1>)
    store(%y, typeinfo(%v, <R, 1>))

Large windows are reduced one dimension at a time. Narrow floats are added and multiplied as `float`; the tree rounds
once, when it stores.

Rewrite of the sum of each row::

    %s = call <R x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 1, i32 C>, <2 x i32> <i32 1, i32 1>)
    ->
    %rows = call token @llvm.tensor.load(ptr %x.ptr, <R, C>, <0, 1>, <0, 0>, <0, C>)
    %v = call <R*C x float> @llvm.tensor.tovector(token %rows)
    %matrix = call token @llvm.tensor.typeinfo(<R*C x float> %v, <R, C>, <0, 1>, <0, 0>)
    %add = call <R x float> @llvm.tensor.reduce.add(token %matrix, <1, C>, <1, 1>)
    %block = call token @llvm.tensor.typeinfo(<R x float> %add, <R, 1>, <0, 1>, <0, 0>)
    call void @llvm.tensor.store(ptr %s.buf, token %block, <0, 1>)

of 2 x 2 windows that overlap::

    %s = call <R*C x float> @llvm.tensor.reduce.add(token %x, <2 x i32> <i32 2, i32 2>, <2 x i32> <i32 1, i32 1>)
    ->
    store(%s.buf, typeinfo(fadd(fadd(fadd(load %x.ptr, load %x.ptr + 1), load %x.ptr + C), load %x.ptr + C + 1)))

and of adjacent 2 x 2 windows, for which even and odd columns are first deinterleaved::

    store(%buf, transpose(load %x.ptr, <C/2, 2>))                         ; for each row
    store(%s.buf, typeinfo(fadd(fadd(fadd(load %buf, load %buf + C/2), ...
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tlx.diagnostics import LoweringError, size_text
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, Type, VectorType, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.views import Storage, TensorView, collapse_neighbours
from tlx.lower.operations import emit_portable_combine
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loop_nests import (
    INDEX_LIMIT,
    LoopDim,
    Plane,
    choose_plane,
    longest_dim,
    loop_nest,
    ordered_by_stride,
    without_dims,
)
from tlx.lower.to_2d.memory.copies import copy, load_block, store_block


@dataclass(frozen=True, eq=False)
class WindowAxis:
    """One dimension of a reduction.

    Attributes:
        extent: Extent of the result.
        stride: Elements between neighbours in the source.
        result_stride: Elements between neighbours in the result.
        window: Extent of the window.
        step: Step of the window in elements of the source.
    """

    extent: int
    stride: int
    result_stride: int
    window: int = 1
    step: int = 1

    @property
    def input_extent(self) -> int:
        """Number of elements of the source that windows cover."""
        return (self.extent - 1) * self.step + self.window

    @property
    def dim(self) -> LoopDim:
        """The dimension of the result, with strides in source and result."""
        return LoopDim(self.extent, (self.stride * self.step, self.result_stride))

    def without_window(self, result_stride: int) -> WindowAxis:
        """The same dimension, copied instead of reduced."""
        return WindowAxis(self.input_extent, self.stride, result_stride)


@dataclass(frozen=True)
class TypedPointer:
    """The address of elements in memory, with their type."""

    pointer: Value
    element: Type

    @classmethod
    def of(cls, view: TensorView) -> TypedPointer:
        """The first element of a view."""
        return cls(view.storage.pointer, view.element)

    def at(self, b: TensorBuilder, offset: Value | int, name: str = "") -> TypedPointer:
        """The address of the element at an offset."""
        return replace(self, pointer=b.gep(self.element, self.pointer, offset, name))


def working_type(element: Type) -> Type:
    """The type in which elements are combined."""
    return FLOAT if element in (HALF, BFLOAT) else element


def window_plane(axes: Sequence[WindowAxis]) -> Plane:
    """The plane of results that an unrolled tree writes."""
    return choose_plane(ordered_by_stride([axis.dim for axis in axes]))


def reduce_unrolled(
    b: TensorBuilder,
    kind: str,
    axes: Sequence[WindowAxis],
    offsets: Sequence[Sequence[int]],
    source: TypedPointer,
    destination: TypedPointer,
) -> None:
    """Combine the elements of each window in one tree.

    Args:
        b: The builder.
        kind: add, mul, max, min, and, or, xor.
        axes: The dimensions.
        offsets: For each dimension the offsets of a window's elements from its first one.
        source: The operand.
        destination: The destination.
    """
    rows, cols, rest = window_plane(axes)
    down, right = (dim.strides if dim.extent > 1 else (0, 0) for dim in (rows, cols))
    with loop_nest(b, rest, 2) as starts:
        start, destination = source.at(b, starts[0], "from"), destination.at(b, starts[1], "to")
        total: Value | None = None
        for offset in map(sum, itertools.product(*offsets)):
            at = start.at(b, offset, "next").pointer
            vector = _widened(b, load_block(b, at, source.element, rows[0], cols[0], down[0], right[0]))
            total = vector if total is None else emit_portable_combine(b, kind, total, vector)
        assert total is not None
        narrow = _cast(b, "fptrunc", total, destination.element)
        store_block(b, narrow, destination.pointer, destination.element, rows[0], cols[0], down[1])


def reduce_by_lines(
    b: TensorBuilder, kind: str, axes: Sequence[WindowAxis], source: TypedPointer, destination: TypedPointer
) -> None:
    """Reduce the only dimension that has a window, as rows or columns of matrices.

    Raises:
        LoweringError: The elements of a window are too far apart in memory.
    """
    (axis,) = (axis for axis in axes if axis.window > 1)
    if axis.stride >= INDEX_LIMIT:
        raise LoweringError(f"a window whose elements are {axis.stride} apart is not lowered", b.span)
    dims = ordered_by_stride([axis.dim for axis in axes])
    line = _longest_readable(dims, axis)
    extent, strides = line or (1, (0, 0))
    upright = axis.stride != 1 and strides == (1, 1)
    with loop_nest(b, without_dims(dims, line), 2) as starts:
        start, destination = source.at(b, starts[0], "from"), destination.at(b, starts[1], "to")
        sizes = (axis.window, extent) if upright else (extent, axis.window)
        steps = (axis.stride, 1) if upright else (strides[0], axis.stride)
        vector = load_block(b, start.pointer, source.element, *sizes, *steps)
        vector = vector if source.element == destination.element else _widened(b, vector)
        token = b.typeinfo(vector, TensorType.dense(destination.element, sizes), "matrix")
        window = (axis.window, 1) if upright else (1, axis.window)
        result = b.reduce(kind, token, window)
        shape = (1, extent) if upright else (extent, 1)
        store_block(b, result, destination.pointer, destination.element, *shape, strides[1])


def _longest_readable(dims: Sequence[LoopDim], axis: WindowAxis) -> LoopDim | None:
    """The dimension of the result that a matrix has besides the window: the longest one that a load can read."""
    if axis.stride == 1:
        return longest_dim(dims)
    return next((dim for dim in dims if dim.strides[0] == 1 and dim.strides[1] < INDEX_LIMIT), None)


def _widened(b: TensorBuilder, vector: Value) -> Value:
    assert isinstance(vector.type, VectorType)
    return _cast(b, "fpext", vector, working_type(vector.type.element))


def _cast(b: TensorBuilder, opcode: str, vector: Value, element: Type) -> Value:
    assert isinstance(vector.type, VectorType)
    return b.cast(opcode, vector, VectorType(vector.type.count, element))


_I1_OPERATIONS: Final = {"add": "xor", "mul": "and", "max": "and", "min": "or", "and": "and", "or": "or", "xor": "xor"}
"""Reductions of i1 as operations on bytes of 0 and 1; true is -1 as a signed number."""

Method = Literal["leaves", "lines", "split"]


def reduce_axes(
    context: EmitContext,
    b: TensorBuilder,
    op: TensorOp,
    axes: Sequence[WindowAxis],
    source: TypedPointer,
    destination: TypedPointer,
) -> None:
    """Write a reduction.

    Args:
        context: Target, temporaries and remarks.
        b: The builder.
        op: The operation.
        axes: The dimensions with their windows.
        source: The operand.
        destination: The destination.
    """
    kind = op.intrinsic.name.removeprefix("reduce.")
    reduction = _ReductionEmitter(context, b, op, _I1_OPERATIONS[kind] if op.tensors[0].type.element == I1 else kind)
    reduction.run(_simplified(axes), source, destination)


def _simplified(axes: Sequence[WindowAxis]) -> list[WindowAxis]:
    """The dimensions from the largest stride to the smallest, without those of extent 1, contiguous windows merged."""

    def collapsed(outer: WindowAxis, axis: WindowAxis) -> WindowAxis | None:
        is_contiguous = outer.extent == axis.extent == 1 and outer.stride == axis.stride * axis.window
        return replace(axis, window=outer.window * axis.window) if is_contiguous else None

    ordered = sorted(axes, key=lambda axis: axis.stride, reverse=True)
    return collapse_neighbours((axis for axis in ordered if axis.input_extent > 1), collapsed)


@dataclass(frozen=True)
class _ReductionEmitter:
    """Emits one reduction.

    Attributes:
        context: Target, temporaries and remarks.
        b: The builder.
        op: The operation.
        kind: add, mul, max, min, and, or, xor.
    """

    context: EmitContext
    b: TensorBuilder
    op: TensorOp
    kind: str

    def run(self, axes: Sequence[WindowAxis], source: TypedPointer, destination: TypedPointer) -> None:
        """Reduce all windows; if that takes a temporary, in parts that fit into the cache."""
        if not any(axis.window > 1 for axis in axes) and source.element == destination.element:
            copy(self.b, _axes_view(source, axes), _axes_view(destination, axes, is_result=True))
            return
        costs = self.context.target.block_costs
        method, first = _choose_pass(axes, costs.reductions.max_unrolled_window)
        windows = [axis for axis in axes if axis.window > 1]
        if method != "split" and first == windows and (method == "leaves" or _is_exact(source, destination)):
            self._pass(method, axes, source, destination)
            return
        loops = _outer_loops(axes, bytes_of(source.element), costs.reductions.max_temporary_bytes)
        inner = [axis for axis in axes if axis not in loops]
        with loop_nest(self.b, [axis.dim for axis in loops], 2) as starts:
            start, end = source.at(self.b, starts[0], "from"), destination.at(self.b, starts[1], "to")
            self._through_temporary(inner, start, end)

    def _through_temporary(self, axes: Sequence[WindowAxis], source: TypedPointer, destination: TypedPointer) -> None:
        method, first = _choose_pass(axes, self.context.target.block_costs.reductions.max_unrolled_window)
        if method == "split":
            self._split(axes, source, destination)
            return
        passed = _pass_axes(axes, first)
        between = self._temporary(working_type(source.element), math.prod(axis.extent for axis in passed))
        self._pass(method, passed, source, between)
        pairs = zip(axes, (axis.result_stride for axis in passed), strict=True)
        rest = [
            WindowAxis(a.extent, stride, a.result_stride) if a in first else replace(a, stride=stride)
            for a, stride in pairs
        ]
        self.run(rest, between, destination)

    def _pass(
        self, method: Method, axes: Sequence[WindowAxis], source: TypedPointer, destination: TypedPointer
    ) -> None:
        if method == "lines":
            reduce_by_lines(self.b, self.kind, axes, source, destination)
        else:
            offsets = [range(0, axis.window * axis.stride, axis.stride) for axis in axes]
            reduce_unrolled(self.b, self.kind, axes, offsets, source, destination)

    def _split(self, axes: Sequence[WindowAxis], source: TypedPointer, destination: TypedPointer) -> None:
        """Deinterleave a dense dimension by the step of its window, 0 2 4 ..., 1 3 5 ..., then reduce."""
        *outer, inner = axes
        step, length = inner.step, -(-inner.input_extent // inner.step)
        extents = [*(axis.input_extent for axis in outer), step, length]
        strides = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
        split = self._temporary(source.element, math.prod(extents))
        without_window = [axis.without_window(s) for axis, s in zip(outer, strides, strict=False)]
        full, left = divmod(inner.input_extent, step)
        if full:
            self._copy([*without_window, WindowAxis(full, step, 1), WindowAxis(step, 1, length)], source, split)
        if left:
            self._copy(
                [*without_window, WindowAxis(left, 1, length)], source.at(self.b, full * step), split.at(self.b, full)
            )
        moved = [replace(axis, stride=s) for axis, s in zip(outer, strides, strict=False)]
        offsets = [range(0, axis.window * axis.stride, axis.stride) for axis in moved]
        dense = [k % step * length + k // step for k in range(inner.window)]
        last = replace(inner, step=1)
        reduce_unrolled(self.b, self.kind, [*moved, last], [*offsets, dense], split, destination)

    def _copy(self, axes: Sequence[WindowAxis], source: TypedPointer, destination: TypedPointer) -> None:
        copy(self.b, _axes_view(source, axes), _axes_view(destination, axes, is_result=True))

    def _temporary(self, element: Type, count: int) -> TypedPointer:
        size = size_text(count * bytes_of(element))
        message = f"temporary of {size} for {self.op.intrinsic.name}, because its windows take more than one pass"
        self.context.remark_missed(message, self.op.instruction.span)
        return TypedPointer(self.context.allocate(element, count, self.op.intrinsic.name).pointer, element)


def _axes_view(data: TypedPointer, axes: Sequence[WindowAxis], *, is_result: bool = False) -> TensorView:
    return TensorView.strided(Storage(data.pointer), data.element, [axis.dim.of(int(is_result)) for axis in axes])


def _is_exact(source: TypedPointer, destination: TypedPointer) -> bool:
    """Whether one tree can write the result in its type, so that it is rounded only once."""
    return destination.element in (source.element, working_type(destination.element))


def _pass_axes(axes: Sequence[WindowAxis], reduced: Sequence[WindowAxis]) -> list[WindowAxis]:
    """The dimensions of a pass that reduces some of them and writes a dense temporary."""
    extents = [axis.extent if axis in reduced else axis.input_extent for axis in axes]
    strides = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
    pairs = zip(axes, strides, strict=True)
    return [replace(a, result_stride=stride) if a in reduced else a.without_window(stride) for a, stride in pairs]


def _choose_pass(axes: Sequence[WindowAxis], most_unrolled: int) -> tuple[Method, list[WindowAxis]]:
    """The kind of the first pass over the operand, and the dimensions that it reduces.

    Args:
        axes: The dimensions, ordered from the largest stride to the smallest.
        most_unrolled: Elements of a window up to which they are one tree.
    """
    inner = axes[-1]
    has_gaps = inner.stride == 1 and inner.step > 1 and inner.extent > 1
    all_windows = [axis for axis in axes if axis.window > 1]
    windows = all_windows
    if len(windows) > 1 and math.prod(axis.window for axis in windows) > most_unrolled:
        windows = [max(all_windows, key=lambda a: (not (a is inner and has_gaps), a.input_extent / a.extent))]
    if len(windows) == 1 and windows[0].window > most_unrolled:
        return "lines", windows
    written = axes if windows == all_windows else _pass_axes(axes, windows)
    if inner.stride != 1 or window_plane(written).cols.extent > 1:
        return "leaves", windows
    if has_gaps and windows == all_windows:
        return "split", windows
    return ("lines", [inner]) if inner.window > 1 else ("leaves", windows)


def _outer_loops(axes: Sequence[WindowAxis], size: int, cached: int) -> list[WindowAxis]:
    """Dimensions without windows that become loops, largest strides first, until the others fit into the cache."""
    loops: list[WindowAxis] = []
    total = size * math.prod(axis.input_extent for axis in axes)
    for axis in sorted(axes, key=lambda a: a.result_stride, reverse=True):
        if axis.window == 1 and axis is not axes[-1] and total > cached:
            loops.append(axis)
            total = total // axis.input_extent
    return loops
