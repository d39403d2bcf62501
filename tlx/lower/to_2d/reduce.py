"""`llvm.tensor.reduce.*`: windows are reduced by 2-D trees, one dimension after the other where they are large.

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

and of 2 x 2 windows side by side, for which even and odd columns are first taken apart::

    store(%buf, transpose(load %x.ptr, <C/2, 2>))                         ; for each row
    store(%s.buf, typeinfo(fadd(fadd(fadd(load %buf, load %buf + C/2), ...
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.tensors import TensorOp
from tlx.ir.types import I1, Type, bytes_of
from tlx.lower.to_2d.buffers import size_text
from tlx.lower.to_2d.copies import copy
from tlx.lower.to_2d.loops import nest
from tlx.lower.to_2d.plan import STAGE, Plan
from tlx.lower.to_2d.views import Place, View
from tlx.lower.to_2d.windows import Axis, Data, reduce_leaves, reduce_lines, window_plane, working_type

_LEAVES: Final = 16
"""Elements of a window that one tree may load."""
_CACHED: Final = 1 << 18
"""Bytes that stay in the cache: larger temporaries are made in parts, where dimensions without windows allow."""

_OF_TRUTH: Final = {"add": "xor", "mul": "and", "max": "and", "min": "or", "and": "and", "or": "or", "xor": "xor"}
"""What reductions of i1 are on bytes of 0 and 1; as a signed number, true is -1."""

Method = Literal["leaves", "lines", "split"]


def lower_reduce(plan: Plan, b: TensorBuilder, op: TensorOp, target: View) -> None:
    """Write the reduction of each window of the operand to `target`."""
    source = plan.view(op.tensors[0])
    sizes = zip(source.dims, target.dims, *op.dims, strict=True)
    axes = [Axis(out.extent, dim.stride, out.stride, window, step) for dim, out, window, step in sizes]
    reduce_axes(plan, b, op, axes, _data(source), _data(target))


def reduce_axes(plan: Plan, b: TensorBuilder, op: TensorOp, axes: Sequence[Axis], source: Data, target: Data) -> None:
    """Write what an operation reduces, dimension by dimension.

    Args:
        plan: Gives temporaries.
        b: Where.
        op: The operation.
        axes: The dimensions, with their windows.
        source: What is reduced.
        target: Where the result goes.
    """
    kind = op.intrinsic.name.removeprefix("reduce.")
    reduction = _Reduction(plan, b, op, _OF_TRUTH[kind] if op.tensors[0].type.element == I1 else kind)
    reduction.run(_simplified(axes), source, target)


def _data(view: View) -> Data:
    return Data(view.place.pointer, view.element)


def _simplified(axes: Sequence[Axis]) -> list[Axis]:
    """The dimensions from the largest stride to the smallest; those that windows cover as if they were one are one."""
    result: list[Axis] = []
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
        plan: Gives temporaries.
        b: Where.
        op: The operation.
        kind: add, mul, max, min, and, or, xor.
    """

    plan: Plan
    b: TensorBuilder
    op: TensorOp
    kind: str

    def run(self, axes: Sequence[Axis], source: Data, target: Data) -> None:
        """Reduce all windows; where that takes a temporary, in parts that fit into the cache."""
        if not any(axis.window > 1 for axis in axes) and source.element == target.element:
            copy(self.b, _view(source, axes), _view(target, axes, target=True))
            return
        method, first = _choose(axes)
        windows = [axis for axis in axes if axis.window > 1]
        if method != "split" and first == windows and (method == "leaves" or _is_exact(source, target)):
            self._pass(method, axes, source, target)
            return
        loops = _loops(axes, bytes_of(source.element))
        inner = [axis for axis in axes if axis not in loops]
        with nest(self.b, [axis.walk for axis in loops], 2) as starts:
            start, end = source.at(self.b, starts[0], "from"), target.at(self.b, starts[1], "to")
            self._through_temporary(inner, start, end)

    def _through_temporary(self, axes: Sequence[Axis], source: Data, target: Data) -> None:
        method, first = _choose(axes)
        if method == "split":
            self._split(axes, source, target)
            return
        passed = _pass_axes(axes, first)
        between = self._temporary(working_type(source.element), math.prod(axis.extent for axis in passed))
        self._pass(method, passed, source, between)
        pairs = zip(axes, (axis.target for axis in passed), strict=True)
        rest = [Axis(a.extent, stride, a.target) if a in first else replace(a, stride=stride) for a, stride in pairs]
        self.run(rest, between, target)

    def _pass(self, method: Method, axes: Sequence[Axis], source: Data, target: Data) -> None:
        if method == "lines":
            reduce_lines(self.b, self.kind, axes, source, target)
        else:
            offsets = [range(0, axis.window * axis.stride, axis.stride) for axis in axes]
            reduce_leaves(self.b, self.kind, axes, offsets, source, target)

    def _split(self, axes: Sequence[Axis], source: Data, target: Data) -> None:
        """Take the elements of a dense dimension apart that are not neighbours in any result: 0 2 4 ..., 1 3 5 ..."""
        *outer, inner = axes
        step, length = inner.step, -(-inner.reach // inner.step)
        extents = [*(axis.reach for axis in outer), step, length]
        strides = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
        apart = self._temporary(source.element, math.prod(extents))
        whole = [axis.whole(s) for axis, s in zip(outer, strides, strict=False)]
        full, left = divmod(inner.reach, step)
        if full:
            self._copy([*whole, Axis(full, step, 1), Axis(step, 1, length)], source, apart)
        if left:
            self._copy([*whole, Axis(left, 1, length)], source.at(self.b, full * step), apart.at(self.b, full))
        moved = [replace(axis, stride=s) for axis, s in zip(outer, strides, strict=False)]
        offsets = [range(0, axis.window * axis.stride, axis.stride) for axis in moved]
        dense = [k % step * length + k // step for k in range(inner.window)]
        last = replace(inner, step=1)
        reduce_leaves(self.b, self.kind, [*moved, last], [*offsets, dense], apart, target)

    def _copy(self, axes: Sequence[Axis], source: Data, target: Data) -> None:
        copy(self.b, _view(source, axes), _view(target, axes, target=True))

    def _temporary(self, element: Type, count: int) -> Data:
        size = size_text(count * bytes_of(element))
        message = f"temporary of {size} for {self.op.intrinsic.name}, because one pass does not reduce its windows"
        self.plan.context.remarks.add("missed", STAGE, message, self.op.instruction.span)
        return Data(self.plan.new_place(element, count, self.op.intrinsic.name).pointer, element)


def _view(data: Data, axes: Sequence[Axis], *, target: bool = False) -> View:
    extents = tuple(axis.extent for axis in axes)
    steps = tuple(axis.walk[1][target] for axis in axes)
    return View(Place(data.pointer), data.element, extents, extents, steps, tuple(range(len(axes))))


def _is_exact(source: Data, target: Data) -> bool:
    """Whether one tree gives the result in its type: what it adds up in a wider one is rounded once, at its end."""
    return target.element in (source.element, working_type(target.element))


def _pass_axes(axes: Sequence[Axis], reduced: Sequence[Axis]) -> list[Axis]:
    """The dimensions of a pass that reduces some of them and writes a dense temporary."""
    extents = [axis.extent if axis in reduced else axis.reach for axis in axes]
    strides = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
    pairs = zip(axes, strides, strict=True)
    return [replace(a, target=stride) if a in reduced else a.whole(stride) for a, stride in pairs]


def _choose(axes: Sequence[Axis]) -> tuple[Method, list[Axis]]:
    """How to begin: which dimensions to reduce in the first pass over the operand, and by which trees.

    `axes` go from the largest stride to the smallest.
    """
    inner = axes[-1]
    is_apart = inner.stride == 1 and inner.step > 1 and inner.extent > 1
    every = [axis for axis in axes if axis.window > 1]
    windows = every
    if len(windows) > 1 and math.prod(axis.window for axis in windows) > _LEAVES:
        windows = [max(every, key=lambda a: (not (a is inner and is_apart), a.reach / a.extent))]
    if len(windows) == 1 and windows[0].window > _LEAVES:
        return "lines", windows
    written = axes if windows == every else _pass_axes(axes, windows)
    if inner.stride != 1 or window_plane(written).cols[0] > 1:
        return "leaves", windows
    if is_apart and windows == every:
        return "split", windows
    return ("lines", [inner]) if inner.window > 1 else ("leaves", windows)


def _loops(axes: Sequence[Axis], size: int) -> list[Axis]:
    """Dimensions without windows, those farthest apart in the result first, until the others fit into the cache."""
    chosen: list[Axis] = []
    total = size * math.prod(axis.reach for axis in axes)
    for axis in sorted(axes, key=lambda a: a.target, reverse=True):
        if axis.window == 1 and axis is not axes[-1] and total > _CACHED:
            chosen.append(axis)
            total = total // axis.reach
    return chosen
