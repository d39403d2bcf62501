"""Slices at positions that are known when the function runs: dynamic slice and update, gather, scatter."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

import numpy as np

from tlx.graph.composites import Composites
from tlx.graph.core import BOOL, listed
from tlx.graph.value import Buffer, DType, Operand, Value
from tlx.graph.view import View
from tlx.intrinsics.numpy_types import type_of
from tlx.ir import values as ir
from tlx.ir.types import I1, I8, I64, ArrayType, Type, bytes_of

_COMBINE: Final = ("set", "add", "multiply", "maximum", "minimum")
_STACK_BYTES: Final = 16384
_ALIGNMENT: Final = 64


class Indexing(Composites):
    """Operations on parts of tensors whose positions are values.

    Positions are integers of any type. They are clamped, as in XLA, so that what they select lies inside the tensor.
    Results are buffers that nothing writes after the operation; those of more than 16 KiB are on the heap until the
    function ends.
    """

    def dynamic_slice(self, x: Operand, starts: Sequence[Operand], shape: Sequence[int]) -> Value:
        """A box of a tensor: a view of a parameter, a weight or a buffer, without a copy.

        Args:
            x: The tensor.
            starts: Position of the box in each dimension, integers or scalars.
            shape: Its shape.
        """
        value = self._stored(self._value("dynamic_slice", x))
        extents = self._shape("dynamic_slice", shape)
        positions = self._positions("dynamic_slice", value, starts, extents)
        return self._at(value, positions, extents)

    def dynamic_update_slice(self, x: Operand, update: Operand, starts: Sequence[Operand]) -> Value:
        """A copy of a tensor with a box of it replaced.

        Args:
            x: The tensor.
            update: The new elements, of the same rank.
            starts: Position of the box in each dimension, integers or scalars.
        """
        value, new = self._pair("dynamic_update_slice", x, update)
        positions = self._positions("dynamic_update_slice", value, starts, new.shape)
        result = self._copied(value)
        self._write(self._at(result, positions, new.shape), new)
        return result

    def gather(self, x: Operand, starts: Operand, axes: Sequence[int], shape: Sequence[int]) -> Value:
        """Boxes of a tensor, one for each row of `starts`: the result's shape is `(rows, *shape)`.

        Args:
            x: The tensor.
            starts: Matrix of integers: a row for each box, a column for each dimension in `axes`.
            axes: The dimensions whose positions `starts` has; the position in others is 0.
            shape: Shape of a box, with an extent for each dimension of `x`.
        """
        value = self._stored(self._value("gather", x))
        rows, along = self._start_rows("gather", value, starts, axes)
        extents = self._shape("gather", shape)
        self._check_box("gather", value, extents)
        count = rows.shape[0]
        result = self._buffer((count, *extents), value.dtype)
        with self._loop(count) as number:
            positions = self._clamped(value, self._row(rows, number, value.rank, along), extents)
            self._write(self._nth(result, number), self._at(value, positions, extents))
        return result

    def take(self, x: Operand, indices: Operand, axis: int = 0) -> Value:
        """`numpy.take`: slices of a tensor along a dimension, such as the rows of an embedding."""
        value, positions = self._value("take", x), self._value("take", indices)
        along = self._axis("take", axis, value.rank)
        shape = tuple(1 if d == along else e for d, e in enumerate(value.shape))
        boxes = self.gather(value, self.reshape(positions, (positions.view.count, 1)), [along], shape)
        split = self.reshape(boxes, (*positions.shape, *value.shape[:along], *value.shape[along + 1 :]))
        order = [positions.rank + k for k in range(along)] + list(range(positions.rank))
        return self.transpose(split, [*order, *range(positions.rank + along, split.rank)])

    def scatter(
        self, x: Operand, starts: Operand, axes: Sequence[int], updates: Operand, combine: str = "set"
    ) -> Value:
        """A copy of a tensor, into which boxes are written or combined one after the other.

        Args:
            x: The tensor.
            starts: Matrix of integers: a row for each box, a column for each dimension in `axes`.
            axes: The dimensions whose positions `starts` has; the position in others is 0.
            updates: The boxes, `(rows, *shape)`. One that does not lie inside `x` is ignored, as in XLA.
            combine: `set`, `add`, `multiply`, `maximum` or `minimum`.
        """
        value, boxes = self._pair("scatter", x, updates)
        rows, along = self._start_rows("scatter", value, starts, axes)
        if combine not in _COMBINE:
            self._fail("scatter", f"{combine!r} is not one of {', '.join(_COMBINE)}")
        if boxes.rank != value.rank + 1 or boxes.shape[0] != rows.shape[0]:
            expected = f"{rows.shape[0]} boxes of rank {value.rank}"
            self._fail("scatter", f"updates of shape {listed(boxes.shape)} are not {expected}")
        extents = boxes.shape[1:]
        self._check_box("scatter", value, extents)
        result, source = self._copied(value), self._stored(boxes)
        with self._loop(rows.shape[0]) as number:
            positions = self._row(rows, number, value.rank, along)
            clamped = self._clamped(value, positions, extents)
            inside: ir.Value = ir.ConstInt(I1, 1)
            for axis in along:
                is_same = self._builder.icmp("eq", positions[axis], clamped[axis])
                inside = is_same if isinstance(inside, ir.ConstInt) else self._builder.binary("and", inside, is_same)
            with self._builder.if_block(inside, "inside"):
                target, new = self._at(result, clamped, extents), self._nth(source, number)
                self._write(target, new if combine == "set" else self.binary(combine, target, new))
        return result

    # Positions -------------------------------------------------------------------------------------------------

    def _positions(self, operation: str, x: Value, starts: Sequence[Operand], shape: Sequence[int]) -> list[ir.Value]:
        """Clamped positions of a box."""
        self._check_box(operation, x, shape)
        if len(starts) != x.rank:
            self._fail(operation, f"{len(starts)} starts for a tensor of rank {x.rank}")
        scalars = [self._value(operation, start, np.dtype(np.int64)) for start in starts]
        for scalar in scalars:
            if scalar.shape or scalar.dtype.kind not in "iu":
                self._fail(operation, f"a start is {scalar!r}: it must be an integer without dimensions")
        return self._clamped(x, [self._integer(scalar, ir.ConstInt(I64, 0)) for scalar in scalars], shape)

    def _check_box(self, operation: str, x: Value, shape: Sequence[int]) -> None:
        if len(shape) != x.rank or any(e > whole for e, whole in zip(shape, x.shape, strict=True)):
            self._fail(operation, f"a box of shape {listed(shape)} is not inside {listed(x.shape)}")

    def _start_rows(
        self, operation: str, x: Value, starts: Operand, axes: Sequence[int]
    ) -> tuple[Value, tuple[int, ...]]:
        """The starts as a dense matrix in memory."""
        along = self._axes(operation, tuple(axes), x.rank)
        rows = self._value(operation, starts)
        if rows.rank != 2 or rows.shape[1] != len(along) or rows.dtype.kind not in "iu" or not along:
            expected = f"a matrix of integers with a column for each of axes {listed(along)}"
            self._fail(operation, f"starts are {rows!r}: expected {expected}")
        return self._stored(self._dense(rows)), along

    def _row(self, rows: Value, number: ir.Value, rank: int, along: Sequence[int]) -> list[ir.Value]:
        """The positions in a row of starts."""
        b = self._builder
        first = b.mul(number, len(along))
        columns = [self._integer(rows, b.add(first, k)) for k in range(len(along))]
        return [columns[along.index(d)] if d in along else ir.ConstInt(I64, 0) for d in range(rank)]

    def _integer(self, x: Value, number: ir.Value) -> ir.Value:
        """An element of a dense tensor of integers, as i64."""
        operand = x.buffer.operand
        if isinstance(operand, ir.ConstInt):
            return ir.ConstInt(I64, operand.value)
        stored = self._stored(x)
        type_ = type_of(x.dtype)
        pointer = self._builder.gep(type_, stored.buffer.operand, self._builder.add(number, stored.view.offset))
        loaded = self._builder.load(type_, pointer, bytes_of(type_))
        return self._builder.cast("zext" if x.dtype.kind == "u" else "sext", loaded, I64)

    def _clamped(self, x: Value, positions: Sequence[ir.Value], shape: Sequence[int]) -> list[ir.Value]:
        """Positions at which a box lies inside."""
        b = self._builder
        clamped: list[ir.Value] = []
        for position, whole, extent in zip(positions, x.shape, shape, strict=True):
            last = whole - extent
            if isinstance(position, ir.ConstInt):
                clamped.append(ir.ConstInt(I64, min(max(position.value, 0), last)))
                continue
            least = b.select(b.icmp("slt", position, 0), ir.ConstInt(I64, 0), position)
            clamped.append(b.select(b.icmp("slt", least, last), least, ir.ConstInt(I64, last)))
        return clamped

    # Memory ----------------------------------------------------------------------------------------------------

    def _at(self, x: Value, positions: Sequence[ir.Value], shape: Sequence[int]) -> Value:
        """A box of a value in memory."""
        b = self._builder
        offset: ir.Value = ir.ConstInt(I64, x.view.offset)
        for position, stride in zip(positions, x.view.strides, strict=True):
            offset = b.add(offset, b.mul(position, stride))
        pointer = b.gep(_stored_type(x.dtype), x.buffer.operand, offset)
        return self._make(x.dtype, View(tuple(shape), x.view.strides), Buffer(pointer, 0))

    def _nth(self, x: Value, number: ir.Value) -> Value:
        """`x[number]` of a value in memory."""
        first = self._at(x, [number, *[ir.ConstInt(I64, 0)] * (x.rank - 1)], (1, *x.shape[1:]))
        return self._with_view(first, first.view.permuted(range(1, x.rank)))

    def _write(self, target: Value, new: Value) -> None:
        """Write a tensor to a box of a row-major buffer."""
        dense = self._dense(new)
        token = self._token_of_all(dense) if dense.rank else self._token(dense)[0]
        strides = target.view.strides
        pitches = [0, *(outer // inner for outer, inner in pairwise(strides))]
        self._builder.tensor_store(target.buffer.operand, token, pitches)
        written = target.buffer.operand.typed  # what was read from there before has changed
        self._tokens = {key: token for key, token in self._tokens.items() if key[0] != written}
        self._vectors = {key: vector for key, vector in self._vectors.items() if key[0] != written}

    def _buffer(self, shape: Sequence[int], dtype: DType) -> Value:
        """Memory for a row-major tensor, allocated where the function begins."""
        count, b = math.prod(shape), self._builder
        size = count * bytes_of(_stored_type(dtype))
        if size <= _STACK_BYTES:
            pointer: ir.Value = b.alloca(ArrayType(count, _stored_type(dtype)), "buffer", _ALIGNMENT)
        else:
            pointer = self._allocated(size)
        strides = View.dense(shape).strides
        return self._make(dtype, View(tuple(shape), strides), Buffer(pointer, 0))

    def _allocated(self, size: int) -> ir.Value:
        """Heap memory, allocated at the head of the function and freed at its end."""
        b = self._builder
        block, index, entry = b.block, b.index, self._definition.entry
        b.block, b.index = entry, 0
        pointer = b.call_named("malloc", b.pointer(I8), [ir.ConstInt(I64, size)], "buffer").value
        b.block, b.index = block, index + (block is entry)
        self._heap.append(pointer)
        return pointer

    def _stored(self, x: Value) -> Value:
        """A value in memory: itself, or a buffer with its elements."""
        return x if x.buffer.in_memory and not x.view.repeated else self._copied(x)

    def _copied(self, x: Value) -> Value:
        """A row-major buffer with the elements of a value."""
        result = self._buffer(x.shape, x.dtype)
        self._write(result, x)
        return result

    @contextmanager
    def _loop(self, count: int) -> Generator[ir.Value]:
        """A loop; what is read in its body is not known after it."""
        tokens, vectors = self._tokens.copy(), self._vectors.copy()
        with self._builder.loop(0, count) as state:
            yield state.index
        self._tokens, self._vectors = tokens, vectors


def _stored_type(dtype: DType) -> Type:
    return I8 if dtype == BOOL else type_of(dtype)
