"""Windows that slide over strided memory, and the two kinds of 2-D trees that reduce them.

`reduce_leaves`: few elements in a window. The tree loads the block at each position of the window and combines them::

    %a = tovector(load %x, <R, C>)        %b = tovector(load %x + 1, <R, C>)        ...
    %v = fadd <R*C x float> %a, %b
    store(%y, typeinfo(%v))

`reduce_lines`: one dimension of the window, of any length, together with one of the result::

    %v = call <R x float> @llvm.tensor.reduce.add(token typeinfo(tovector(load %x, <R, W>)), <1, W>, <1, 1>)
    store(%y, typeinfo(%v, <R, 1>))

Narrow floats are added and multiplied as `float`; the tree rounds once, when it stores.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import BFLOAT, FLOAT, HALF, FloatType, Type, VectorType
from tlx.ir.values import Value
from tlx.lower.to_2d.leaves import leaf_vector, store_vector
from tlx.lower.to_2d.loops import INDEX_LIMIT, Walk, nest
from tlx.lower.to_2d.planes import Plane, longest, ordered, plane, without
from tlx.types import TensorType

_OPCODES: Final = {"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_FLOAT_OPCODES: Final = {"add": "fadd", "mul": "fmul"}
_FLOAT_CALLS: Final = {"max": "llvm.maximum", "min": "llvm.minimum"}
_GREATER: Final = {"max": "sgt", "min": "slt"}


@dataclass(frozen=True, eq=False)
class Axis:
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
    def walk(self) -> Walk:
        """The dimension of the result."""
        return self.extent, (self.stride * self.step, self.target)

    def whole(self, target: int) -> Axis:
        """The same dimension, not reduced but copied."""
        return Axis(self.reach, self.stride, target)


@dataclass(frozen=True)
class Data:
    """Elements in memory."""

    pointer: Value
    element: Type

    def at(self, b: TensorBuilder, offset: Value | int, name: str = "") -> Data:
        """The elements from one on."""
        return replace(self, pointer=b.gep(self.element, self.pointer, offset, name))


def working_type(element: Type) -> Type:
    """The type in which elements are combined."""
    return FLOAT if element in (HALF, BFLOAT) else element


def window_plane(axes: Sequence[Axis]) -> Plane:
    """The plane of results that a tree of leaves writes."""
    return plane(ordered([axis.walk for axis in axes]))


def reduce_leaves(
    b: TensorBuilder, kind: str, axes: Sequence[Axis], offsets: Sequence[Sequence[int]], source: Data, target: Data
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
    with nest(b, rest, 2) as starts:
        start, destination = source.at(b, starts[0], "from"), target.at(b, starts[1], "to")
        total: Value | None = None
        for offset in (sum(chosen) for chosen in itertools.product(*offsets)):
            at = start.at(b, offset, "next").pointer
            vector = _widened(b, leaf_vector(b, at, source.element, rows[0], cols[0], down[0], right[0]))
            total = vector if total is None else combine(b, kind, total, vector)
        assert total is not None
        narrow = _cast(b, "fptrunc", total, target.element)
        store_vector(b, narrow, destination.pointer, target.element, rows[0], cols[0], down[1])


def reduce_lines(b: TensorBuilder, kind: str, axes: Sequence[Axis], source: Data, target: Data) -> None:
    """Reduce the one dimension that has a window, by reductions of the rows or the columns of matrices.

    Raises:
        LoweringError: The elements of a window lie too far apart.
    """
    (axis,) = (axis for axis in axes if axis.window > 1)
    if axis.stride >= INDEX_LIMIT:
        raise LoweringError(f"a window whose elements are {axis.stride} apart is not lowered", b.span)
    walks = ordered([axis.walk for axis in axes])
    line = _line(walks, axis)
    extent, strides = line or (1, (0, 0))
    upright = axis.stride != 1 and strides == (1, 1)
    with nest(b, without(walks, line), 2) as starts:
        start, destination = source.at(b, starts[0], "from"), target.at(b, starts[1], "to")
        sizes = (axis.window, extent) if upright else (extent, axis.window)
        steps = (axis.stride, 1) if upright else (strides[0], axis.stride)
        vector = leaf_vector(b, start.pointer, source.element, *sizes, *steps)
        vector = vector if source.element == target.element else _widened(b, vector)
        token = b.typeinfo(vector, TensorType.dense(target.element, sizes), "matrix")
        window = (axis.window, 1) if upright else (1, axis.window)
        result = b.reduce(kind, token, window)
        shape = (1, extent) if upright else (extent, 1)
        store_vector(b, result, destination.pointer, target.element, *shape, strides[1])


def _line(walks: Sequence[Walk], axis: Axis) -> Walk | None:
    """The dimension of the result that a matrix has next to the window: the longest that a load can read."""
    if axis.stride == 1:
        return longest(walks)
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
