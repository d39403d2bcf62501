"""Reductions of windows and of whole dimensions, pass by pass, by the two kinds of 2-D trees that there are.

`reduce_unrolled`: few elements in a window. The tree loads the block at each position of the window and combines them::

    %a = tovector(load %x, <R, C>)        %b = tovector(load %x + 1, <R, C>)        ...
    %v = fadd <R*C x float> %a, %b
    store(%y, typeinfo(%v))

`reduce_by_lines`: one dimension of the window, of any length, together with one of the result::

    %v = call <R x float> @llvm.tensor.reduce.add(token typeinfo(tovector(load %x, <R, W>)), <1, W>, <1, 1>)
    store(%y, typeinfo(%v, <R, 1>))

Narrow floats are added and multiplied as `float`; the tree rounds once, when it stores.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tlx.diagnostics import LoweringError
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import BFLOAT, FLOAT, HALF, I1, FloatType, Type, VectorType, bytes_of
from tlx.ir.values import Value
from tlx.lower.memory.buffers import size_text
from tlx.lower.memory.views import Storage, TensorView
from tlx.lower.to_2d.emission import EmitContext
from tlx.lower.to_2d.loops import (
    INDEX_LIMIT,
    LoopDim,
    Plane,
    choose_plane,
    longest_dim,
    loop_nest,
    ordered_by_stride,
    without_dims,
)
from tlx.lower.to_2d.memory.block_access import load_block, store_block
from tlx.lower.to_2d.memory.copies import copy

_OPCODES: Final = {"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FLOAT_OPCODES: Final = {"add": "fadd", "mul": "fmul"}
_FLOAT_CALLS: Final = {"max": "llvm.maximum", "min": "llvm.minimum"}
_GREATER: Final = {"max": "sgt", "min": "slt"}


@dataclass(frozen=True, eq=False)
class WindowAxis:
    """One dimension of a reduction.

    Attributes:
        extent: Extent of the result.
        stride: Elements between neighbours in the source.
        target: Elements between neighbours in the result.
        window: Extent of the window.
        step: How many elements of the source the window moves on.
    """

    extent: int
    stride: int
    target: int
    window: int = 1
    step: int = 1

    @property
    def reach(self) -> int:
        """Elements of the source that windows cover."""
        return (self.extent - 1) * self.step + self.window

    @property
    def walk(self) -> LoopDim:
        """The dimension of the result."""
        return LoopDim(self.extent, (self.stride * self.step, self.target))

    def whole(self, target: int) -> WindowAxis:
        """The same dimension, not reduced but copied."""
        return WindowAxis(self.reach, self.stride, target)


@dataclass(frozen=True)
class TypedPointer:
    """Elements in memory."""

    pointer: Value
    element: Type

    def at(self, b: TensorBuilder, offset: Value | int, name: str = "") -> TypedPointer:
        """The elements from one on."""
        return replace(self, pointer=b.gep(self.element, self.pointer, offset, name))


def working_type(element: Type) -> Type:
    """The type in which elements are combined."""
    return FLOAT if element in (HALF, BFLOAT) else element


def window_plane(axes: Sequence[WindowAxis]) -> Plane:
    """The plane of results that a tree of leaves writes."""
    return choose_plane(ordered_by_stride([axis.walk for axis in axes]))


def reduce_unrolled(
    b: TensorBuilder,
    kind: str,
    axes: Sequence[WindowAxis],
    offsets: Sequence[Sequence[int]],
    source: TypedPointer,
    target: TypedPointer,
) -> None:
    """Combine the elements of each window in one tree.

    Args:
        b: Where.
        kind: add, mul, max, min, and, or, xor.
        axes: The dimensions.
        offsets: For each of them where the elements of a window lie, from its first.
        source: The operand.
        target: Where the result goes.
    """
    rows, cols, rest = window_plane(axes)
    down, right = (walk[1] if walk[0] > 1 else (0, 0) for walk in (rows, cols))
    with loop_nest(b, rest, 2) as starts:
        start, destination = source.at(b, starts[0], "from"), target.at(b, starts[1], "to")
        total: Value | None = None
        for offset in (sum(chosen) for chosen in itertools.product(*offsets)):
            at = start.at(b, offset, "next").pointer
            vector = _widened(b, load_block(b, at, source.element, rows[0], cols[0], down[0], right[0]))
            total = vector if total is None else combine(b, kind, total, vector)
        assert total is not None
        narrow = _cast(b, "fptrunc", total, target.element)
        store_block(b, narrow, destination.pointer, target.element, rows[0], cols[0], down[1])


def reduce_by_lines(
    b: TensorBuilder, kind: str, axes: Sequence[WindowAxis], source: TypedPointer, target: TypedPointer
) -> None:
    """Reduce the one dimension that has a window, by reductions of the rows or the columns of matrices.

    Raises:
        LoweringError: The elements of a window lie too far apart.
    """
    (axis,) = (axis for axis in axes if axis.window > 1)
    if axis.stride >= INDEX_LIMIT:
        raise LoweringError(f"a window whose elements are {axis.stride} apart is not lowered", b.span)
    walks = ordered_by_stride([axis.walk for axis in axes])
    line = _line(walks, axis)
    extent, strides = line or (1, (0, 0))
    upright = axis.stride != 1 and strides == (1, 1)
    with loop_nest(b, without_dims(walks, line), 2) as starts:
        start, destination = source.at(b, starts[0], "from"), target.at(b, starts[1], "to")
        sizes = (axis.window, extent) if upright else (extent, axis.window)
        steps = (axis.stride, 1) if upright else (strides[0], axis.stride)
        vector = load_block(b, start.pointer, source.element, *sizes, *steps)
        vector = vector if source.element == target.element else _widened(b, vector)
        token = b.typeinfo(vector, TensorType.dense(target.element, sizes), "matrix")
        window = (axis.window, 1) if upright else (1, axis.window)
        result = b.reduce(kind, token, window)
        shape = (1, extent) if upright else (extent, 1)
        store_block(b, result, destination.pointer, target.element, *shape, strides[1])


def _line(walks: Sequence[LoopDim], axis: WindowAxis) -> LoopDim | None:
    """The dimension of the result that a matrix has next to the window: the longest that a load can read."""
    if axis.stride == 1:
        return longest_dim(walks)
    return next((w for w in walks if w[1][0] == 1 and w[1][1] < INDEX_LIMIT), None)


def combine(b: TensorBuilder, kind: str, one: Value, other: Value) -> Value:
    """One step of a reduction, element by element."""
    assert isinstance(one.type, VectorType)
    floats = isinstance(one.type.element, FloatType)
    if floats and kind in _FLOAT_CALLS:
        return b.call_intrinsic(_FLOAT_CALLS[kind], [one.type], one.type, [one, other])
    if kind in _GREATER:
        return b.select(b.icmp(_GREATER[kind], one, other), one, other)
    return b.binary((_FLOAT_OPCODES if floats else _OPCODES)[kind], one, other, kind)


def _widened(b: TensorBuilder, vector: Value) -> Value:
    assert isinstance(vector.type, VectorType)
    return _cast(b, "fpext", vector, working_type(vector.type.element))


def _cast(b: TensorBuilder, opcode: str, vector: Value, element: Type) -> Value:
    assert isinstance(vector.type, VectorType)
    return b.cast(opcode, vector, VectorType(vector.type.count, element))


_MOST_UNROLLED: Final = 16
"""Elements of a window that one tree may load."""
_CACHED: Final = 1 << 18
"""Bytes that stay in the cache: larger temporaries are made in parts, where dimensions without windows allow."""

_OF_TRUTH: Final = {"add": "xor", "mul": "and", "max": "and", "min": "or", "and": "and", "or": "or", "xor": "xor"}
"""What reductions of i1 are on bytes of 0 and 1; as a signed number, true is -1."""

Method = Literal["leaves", "lines", "split"]


def reduce_axes(
    context: EmitContext,
    b: TensorBuilder,
    op: TensorOp,
    axes: Sequence[WindowAxis],
    source: TypedPointer,
    target: TypedPointer,
) -> None:
    """Write what an operation reduces, dimension by dimension.

    Args:
        context: Target, temporaries and remarks.
        b: Where.
        op: The operation.
        axes: The dimensions, with their windows.
        source: What is reduced.
        target: Where the result goes.
    """
    kind = op.intrinsic.name.removeprefix("reduce.")
    reduction = _Reduction(context, b, op, _OF_TRUTH[kind] if op.tensors[0].type.element == I1 else kind)
    reduction.run(_simplified(axes), source, target)


def _simplified(axes: Sequence[WindowAxis]) -> list[WindowAxis]:
    """The dimensions from the largest stride to the smallest; those that windows cover as if they were one are one."""
    result: list[WindowAxis] = []
    for axis in sorted(axes, key=lambda a: a.stride, reverse=True):
        outer = result[-1] if result else None
        if axis.reach == 1:
            continue
        if outer and outer.extent == axis.extent == 1 and outer.stride == axis.stride * axis.window:
            result[-1] = replace(axis, window=outer.window * axis.window)
        else:
            result.append(axis)
    return result


@dataclass(frozen=True)
class _Reduction:
    """Emits one reduction.

    Attributes:
        context: Target, temporaries and remarks.
        b: Where.
        op: The operation.
        kind: add, mul, max, min, and, or, xor.
    """

    context: EmitContext
    b: TensorBuilder
    op: TensorOp
    kind: str

    def run(self, axes: Sequence[WindowAxis], source: TypedPointer, target: TypedPointer) -> None:
        """Reduce all windows; where that takes a temporary, in parts that fit into the cache."""
        if not any(axis.window > 1 for axis in axes) and source.element == target.element:
            copy(self.b, _axes_view(source, axes), _axes_view(target, axes, target=True))
            return
        method, first = _choose_pass(axes)
        windows = [axis for axis in axes if axis.window > 1]
        if method != "split" and first == windows and (method == "leaves" or _is_exact(source, target)):
            self._pass(method, axes, source, target)
            return
        loops = _outer_loops(axes, bytes_of(source.element))
        inner = [axis for axis in axes if axis not in loops]
        with loop_nest(self.b, [axis.walk for axis in loops], 2) as starts:
            start, end = source.at(self.b, starts[0], "from"), target.at(self.b, starts[1], "to")
            self._through_temporary(inner, start, end)

    def _through_temporary(self, axes: Sequence[WindowAxis], source: TypedPointer, target: TypedPointer) -> None:
        method, first = _choose_pass(axes)
        if method == "split":
            self._split(axes, source, target)
            return
        passed = _pass_axes(axes, first)
        between = self._temporary(working_type(source.element), math.prod(axis.extent for axis in passed))
        self._pass(method, passed, source, between)
        pairs = zip(axes, (axis.target for axis in passed), strict=True)
        rest = [
            WindowAxis(a.extent, stride, a.target) if a in first else replace(a, stride=stride) for a, stride in pairs
        ]
        self.run(rest, between, target)

    def _pass(self, method: Method, axes: Sequence[WindowAxis], source: TypedPointer, target: TypedPointer) -> None:
        if method == "lines":
            reduce_by_lines(self.b, self.kind, axes, source, target)
        else:
            offsets = [range(0, axis.window * axis.stride, axis.stride) for axis in axes]
            reduce_unrolled(self.b, self.kind, axes, offsets, source, target)

    def _split(self, axes: Sequence[WindowAxis], source: TypedPointer, target: TypedPointer) -> None:
        """Take the elements of a dense dimension apart that are not neighbours in any result: 0 2 4 ..., 1 3 5 ..."""
        *outer, inner = axes
        step, length = inner.step, -(-inner.reach // inner.step)
        extents = [*(axis.reach for axis in outer), step, length]
        strides = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
        apart = self._temporary(source.element, math.prod(extents))
        whole = [axis.whole(s) for axis, s in zip(outer, strides, strict=False)]
        full, left = divmod(inner.reach, step)
        if full:
            self._copy([*whole, WindowAxis(full, step, 1), WindowAxis(step, 1, length)], source, apart)
        if left:
            self._copy([*whole, WindowAxis(left, 1, length)], source.at(self.b, full * step), apart.at(self.b, full))
        moved = [replace(axis, stride=s) for axis, s in zip(outer, strides, strict=False)]
        offsets = [range(0, axis.window * axis.stride, axis.stride) for axis in moved]
        dense = [k % step * length + k // step for k in range(inner.window)]
        last = replace(inner, step=1)
        reduce_unrolled(self.b, self.kind, [*moved, last], [*offsets, dense], apart, target)

    def _copy(self, axes: Sequence[WindowAxis], source: TypedPointer, target: TypedPointer) -> None:
        copy(self.b, _axes_view(source, axes), _axes_view(target, axes, target=True))

    def _temporary(self, element: Type, count: int) -> TypedPointer:
        size = size_text(count * bytes_of(element))
        message = f"temporary of {size} for {self.op.intrinsic.name}, because one pass does not reduce its windows"
        self.context.remark_missed(message, self.op.instruction.span)
        return TypedPointer(self.context.allocate(element, count, self.op.intrinsic.name).pointer, element)


def _axes_view(data: TypedPointer, axes: Sequence[WindowAxis], *, target: bool = False) -> TensorView:
    return TensorView.strided(Storage(data.pointer), data.element, [axis.walk.of(int(target)) for axis in axes])


def _is_exact(source: TypedPointer, target: TypedPointer) -> bool:
    """Whether one tree gives the result in its type: what it adds up in a wider one is rounded once, at its end."""
    return target.element in (source.element, working_type(target.element))


def _pass_axes(axes: Sequence[WindowAxis], reduced: Sequence[WindowAxis]) -> list[WindowAxis]:
    """The dimensions of a pass that reduces some of them and writes a dense temporary."""
    extents = [axis.extent if axis in reduced else axis.reach for axis in axes]
    strides = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
    pairs = zip(axes, strides, strict=True)
    return [replace(a, target=stride) if a in reduced else a.whole(stride) for a, stride in pairs]


def _choose_pass(axes: Sequence[WindowAxis]) -> tuple[Method, list[WindowAxis]]:
    """How to begin: which dimensions to reduce in the first pass over the operand, and by which trees.

    `axes` go from the largest stride to the smallest.
    """
    inner = axes[-1]
    is_apart = inner.stride == 1 and inner.step > 1 and inner.extent > 1
    every = [axis for axis in axes if axis.window > 1]
    windows = every
    if len(windows) > 1 and math.prod(axis.window for axis in windows) > _MOST_UNROLLED:
        windows = [max(every, key=lambda a: (not (a is inner and is_apart), a.reach / a.extent))]
    if len(windows) == 1 and windows[0].window > _MOST_UNROLLED:
        return "lines", windows
    written = axes if windows == every else _pass_axes(axes, windows)
    if inner.stride != 1 or window_plane(written).cols[0] > 1:
        return "leaves", windows
    if is_apart and windows == every:
        return "split", windows
    return ("lines", [inner]) if inner.window > 1 else ("leaves", windows)


def _outer_loops(axes: Sequence[WindowAxis], size: int) -> list[WindowAxis]:
    """Dimensions without windows, those farthest apart in the result first, until the others fit into the cache."""
    chosen: list[WindowAxis] = []
    total = size * math.prod(axis.reach for axis in axes)
    for axis in sorted(axes, key=lambda a: a.target, reverse=True):
        if axis.window == 1 and axis is not axes[-1] and total > _CACHED:
            chosen.append(axis)
            total = total // axis.reach
    return chosen
