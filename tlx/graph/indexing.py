"""Slices at positions known only at run time: dynamic slice and update, gather, scatter."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np

from tlx.graph.core import BOOL, listed
from tlx.graph.reductions import Reductions
from tlx.graph.shapes import MOST_SLICES
from tlx.graph.value import Buffer, DType, GraphMemory, Operand, Value
from tlx.graph.view import View
from tlx.intrinsics.numpy_types import type_of
from tlx.ir import values as ir
from tlx.ir.builder import LoopState
from tlx.ir.instructions import Block, Instruction
from tlx.ir.types import I1, I8, I64, Type, VectorType, bytes_of
from tlx.lower.operations import ElementwiseOp

_FINAL: Final = -1
"""The region of memory that nothing writes any more."""
_COMBINE: Final = ("set", "add", "multiply", "maximum", "minimum")


class Indexing(Reductions):
    """Operations on parts of tensors whose positions are values.

    Positions are integers of any type. They are clamped, as in XLA, so that what they select lies inside the tensor.

    Updates write into memory of the graph itself: into a copy of a parameter, but into the result of another update or
    of a loop in place. A value that is read after the memory has been overwritten is loaded before that; the lowering
    copies it if it has to.
    """

    def dynamic_slice(self, x: Operand, starts: Sequence[Operand], shape: Sequence[int]) -> Value:
        """A box of a tensor: a view of a parameter, a weight or a buffer, without a copy.

        Args:
            x: The tensor.
            starts: Position of the box in each dimension, integers or scalars.
            shape: Its shape.
        """
        value = self._value("dynamic_slice", x)
        extents = self._shape("dynamic_slice", shape)
        positions = self._positions("dynamic_slice", value, starts, extents)
        if 0 in extents:
            return self._empty(extents, value.dtype)
        return self._box(self._materialized(value), positions, extents)

    def dynamic_update_slice(self, x: Operand, update: Operand, starts: Sequence[Operand]) -> Value:
        """A tensor with a box of it replaced: in place, if the tensor is an earlier update or carried by a loop.

        Args:
            x: The tensor.
            update: The new elements, of the same rank.
            starts: Position of the box in each dimension, integers or scalars.
        """
        value, new = self._common_type("dynamic_update_slice", x, update)
        positions = self._positions("dynamic_update_slice", value, starts, new.shape)
        if not new.view.count:
            return value
        token = self._row_major_token(new)
        result = self._writable(value)
        after = self._preceding()
        self._store(self._box(result, positions, new.shape), token)
        return self._overwritten(result, after)

    def gather(self, x: Operand, starts: Operand, axes: Sequence[int], shape: Sequence[int]) -> Value:
        """Boxes of a tensor, one for each row of `starts`: the result's shape is `(rows, *shape)`.

        Args:
            x: The tensor.
            starts: Matrix of integers: a row for each box, a column for each dimension in `axes`.
            axes: The dimensions whose positions `starts` has; the position in others is 0.
            shape: Shape of a box, with an extent for each dimension of `x`.
        """
        value = self._value("gather", x)
        rows, along = self._start_rows("gather", value, starts, axes)
        extents = self._shape("gather", shape)
        self._check_box("gather", value, extents)
        count = rows.shape[0]
        if 0 in (count, *extents):
            return self._empty((count, *extents), value.dtype)
        value = self._materialized(value)
        result = self._buffer((count, *extents), value.dtype)
        with self._loop(count) as number:
            positions = self._clamped(value, self._row(rows, number, value.rank, along), extents)
            self._write(self._subscript(result, number), self._box(value, positions, extents))
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
        """A tensor into which boxes are written or combined one after the other: in place, as `dynamic_update_slice`.

        Args:
            x: The tensor.
            starts: Matrix of integers: a row for each box, a column for each dimension in `axes`.
            axes: The dimensions whose positions `starts` has; the position in others is 0.
            updates: The boxes, `(rows, *shape)`. One that does not lie inside `x` is ignored, as in XLA.
            combine: `set`, `add`, `multiply`, `maximum` or `minimum`.
        """
        value, boxes = self._common_type("scatter", x, updates)
        rows, along = self._start_rows("scatter", value, starts, axes)
        if combine not in _COMBINE:
            self._fail("scatter", f"{combine!r} is not one of {', '.join(_COMBINE)}")
        if boxes.rank != value.rank + 1 or boxes.shape[0] != rows.shape[0]:
            expected = f"{rows.shape[0]} boxes of rank {value.rank}"
            self._fail("scatter", f"updates of shape {listed(boxes.shape)} are not {expected}")
        extents = boxes.shape[1:]
        self._check_box("scatter", value, extents)
        if not boxes.view.count:
            return value
        result = self._writable(value)
        source = self._materialized(boxes)
        if source.buffer.memory is result.buffer.memory:
            source = self._copy(source)
        if rows.buffer.memory is result.buffer.memory:
            rows = self._copy(rows)
        after = self._preceding()
        with self._loop(rows.shape[0]) as number:
            positions = self._row(rows, number, value.rank, along)
            clamped = self._clamped(value, positions, extents)
            inside: ir.Value = ir.ConstInt(I1, 1)
            for axis in along:
                is_same = self._builder.icmp("eq", positions[axis], clamped[axis])
                inside = is_same if isinstance(inside, ir.ConstInt) else self._builder.binary("and", inside, is_same)
            with self._builder.if_block(inside, "inside"):
                box, new = self._box(result, clamped, extents), self._subscript(source, number)
                self._write(box, new if combine == "set" else self.binary(combine, box, new))
        return self._overwritten(result, after)

    def bitcast(self, x: Operand, dtype: str | type | DType) -> Value:
        """The bits of the elements as another type, as XLA's `bitcast_convert`.

        To a narrower type, the parts of an element become a new last dimension; to a wider one, the last dimension
        holds the parts of an element. The first part has the least significant bits.
        """
        value = self._value("bitcast", x)
        to = self._dtype("bitcast", dtype)
        if BOOL in (value.dtype, to) and value.dtype != to:
            self._fail("bitcast", f"{value.dtype.name} and {to.name}: a bool has no bits, convert it")
        old, new = value.dtype.itemsize, to.itemsize
        if type_of(value.dtype) == type_of(to):
            return self._make(to, value.view, value.buffer)
        if old == new:
            return self._elementwise("bitcast", ElementwiseOp("bitcast"), [value], to)
        if new > old and value.shape[-1:] != (new // old,):
            self._fail("bitcast", f"the last dimension of {listed(value.shape)} must be {new // old} for {to.name}")
        shape = (*value.shape, old // new) if new < old else value.shape[:-1]
        if 0 in shape:
            return self._empty(shape, to)
        stored = self._copy(value)
        return self._make(to, View.dense(shape), stored.buffer)

    def reverse(self, x: Operand, axes: int | Sequence[int]) -> Value:
        """The elements in the opposite order along some dimensions: slices, or a loop if they are many."""
        value = self._value("reverse", x)
        for axis in self._axes("reverse", axes, value.rank):
            if not value.view.count or value.shape[axis] == 1 or axis in value.view.repeated:
                continue
            few = value.shape[axis] <= MOST_SLICES
            value = self._reversed_by_slices(value, axis) if few else self._reversed(value, axis)
        return value

    def _reversed(self, x: Value, axis: int) -> Value:
        """A copy, slice by slice."""
        length, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
        rows = x.view.count // (length * inner)
        source = self._materialized(self.reshape(x, (rows, length, inner)))
        result = self._buffer(source.shape, x.dtype)
        zero = ir.ConstInt(I64, 0)
        box = (1 if inner == 1 else rows, 1, inner)
        with self._loop(rows // box[0]) as row, self._loop(length) as number:
            opposite = self._builder.sub(ir.ConstInt(I64, length - 1), number)
            self._write(self._box(result, [row, number, zero], box), self._box(source, [row, opposite, zero], box))
        return self.reshape(result, x.shape)

    # Positions -------------------------------------------------------------------------------------------------

    def _positions(self, operation: str, x: Value, starts: Sequence[Operand], shape: Sequence[int]) -> list[ir.Value]:
        """Clamped positions of a box."""
        self._check_box(operation, x, shape)
        if len(starts) != x.rank:
            self._fail(operation, f"{len(starts)} starts for a tensor of rank {x.rank}")
        scalars = [self._value(operation, start, np.dtype(np.int64)) for start in starts]
        for scalar in scalars:
            if scalar.shape or scalar.dtype.kind not in "iu":
                self._fail(operation, f"a start is {scalar!r}: it must be a scalar integer")
        return self._clamped(x, [self._scalar_integer(scalar) for scalar in scalars], shape)

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
        return self._materialized(self._dense(rows)) if rows.view.count else rows, along

    def _row(self, rows: Value, number: ir.Value, rank: int, along: Sequence[int]) -> list[ir.Value]:
        """The positions in a row of starts."""
        b = self._builder
        first = b.mul(number, len(along))
        columns = [self._integer(rows, b.add(first, k)) for k in range(len(along))]
        return [columns[along.index(d)] if d in along else ir.ConstInt(I64, 0) for d in range(rank)]

    def _integer(self, x: Value, number: ir.Value) -> ir.Value:
        """An element of a dense tensor of integers in memory, as i64."""
        type_ = type_of(x.dtype)
        pointer = self._builder.gep(type_, x.buffer.operand, self._builder.add(number, x.view.offset))
        loaded = self._builder.load(type_, pointer, bytes_of(type_))
        return self._builder.cast("zext" if x.dtype.kind == "u" else "sext", loaded, I64)

    def _scalar_integer(self, x: Value) -> ir.Value:
        """An integer without dimensions, as i64."""
        scalar = self._scalar(x)
        if isinstance(scalar, ir.ConstInt):
            return ir.ConstInt(I64, scalar.value)
        return self._builder.cast("zext" if x.dtype.kind == "u" else "sext", scalar, I64)

    def _scalar(self, x: Value) -> ir.Value:
        """The element of a tensor that has only one."""
        operand = x.buffer.operand
        if not x.buffer.in_memory and not isinstance(operand.type, VectorType):
            return operand
        return self._builder.extract_element(self._vector(x, range(x.rank)), 0)

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

    def _box(self, x: Value, positions: Sequence[ir.Value], shape: Sequence[int]) -> Value:
        """A box of a value in memory."""
        b = self._builder
        offset: ir.Value = ir.ConstInt(I64, x.view.offset)
        for position, stride in zip(positions, x.view.strides, strict=True):
            offset = b.add(offset, b.mul(position, stride))
        pointer = b.gep(stored_type(x.dtype), x.buffer.operand, offset)
        return self._make(x.dtype, View(tuple(shape), x.view.strides), replace(x.buffer, operand=pointer))

    def _subscript(self, x: Value, number: ir.Value) -> Value:
        """`x[number]` of a value in memory."""
        first = self._box(x, [number, *[ir.ConstInt(I64, 0)] * (x.rank - 1)], (1, *x.shape[1:]))
        return self._with_view(first, first.view.permuted(range(1, x.rank)))

    def _write(self, destination: Value, new: Value) -> None:
        """Write a tensor to a box of a row-major buffer."""
        self._store(destination, self._row_major_token(new))

    def _row_major_token(self, x: Value) -> ir.Local:
        dense = self._dense(x)
        return self._token_of_all(dense) if dense.rank else self._token(dense)[0]

    def _store(self, destination: Value, token: ir.Local) -> None:
        """Write a row-major tensor to a box of a row-major buffer."""
        strides = destination.view.strides
        pitches = [0, *(outer // inner for outer, inner in pairwise(strides))]
        pointer = self._builder.gep(stored_type(destination.dtype), destination.buffer.operand, destination.view.offset)
        self._builder.tensor_store(pointer, token, pitches)
        written = destination.buffer.operand.typed  # what was read from there before has changed
        self._tokens = {key: token for key, token in self._tokens.items() if key[0] != written}
        self._vectors = {key: vector for key, vector in self._vectors.items() if key[0] != written}

    def _buffer(self, shape: Sequence[int], dtype: DType) -> Value:
        """Memory for a row-major tensor, allocated where the function begins."""
        view = View.dense(shape)
        buffer = self._buffers.new(stored_type(dtype), view.count, "buffer")
        self._memories.append(GraphMemory(self._region))
        return self._make(dtype, view, Buffer(buffer.pointer, 0, self._memories[-1]))

    def _replace_buffer(self, buffer: ir.Local, pointer: ir.Value, type_: Type, offset: int = 0) -> None:
        """Insert an address that replaces a buffer, which is then not allocated."""
        self._buffers.discard({buffer.name})
        number = ir.ConstInt(I64, offset)
        body = f"getelementptr inbounds {type_}, {pointer.typed}, {number.typed}"
        address = self._builder.emit("getelementptr", buffer.type, [pointer, number], body, source_type=type_)
        address.text, address.result = f"{buffer} = {body}", buffer.name

    def _store_output(self, x: Value, pointer: ir.Value) -> None:
        """Write a value to memory of the caller, or use that memory as the buffer that the value fills."""
        buffers = {str(b.pointer): b for b in self._buffers.buffers}
        buffer, memory = buffers.get(str(x.buffer.operand)), x.buffer.memory
        type_, b = stored_type(x.dtype), self._builder
        is_filled = buffer is not None and (buffer.count, buffer.element) == (x.view.count, type_)
        if buffer is None or memory is None or not is_filled or not self._is_writable(x, self._region):
            b.tensor_store(pointer, self._token(self._dense(x))[0])
            return
        memory.region = _FINAL
        with b.inserting_at(b.function.entry, 0):
            self._replace_buffer(buffer.pointer, pointer, type_)

    def _materialized(self, x: Value) -> Value:
        """The value in memory that still holds it: itself, or a buffer with its elements."""
        is_stored = x.buffer.in_memory and not x.buffer.is_overwritten and not x.view.repeated
        if is_stored:
            return x
        hoisted = self._hoisted(x)
        return self._copy(x) if hoisted is None else hoisted

    def _hoisted(self, x: Value) -> Value | None:
        """In a loop, a buffer that a vector from another block is stored to once, at the end of that block."""
        operand, b = x.buffer.operand, self._builder
        if not self._region or x.buffer.in_memory or not isinstance(operand, ir.Local):
            return None
        key = operand.name, x.view
        if key not in self._hoists:
            block = b.defining_blocks.get(operand.name, b.block)
            if block is b.block:
                return None
            is_ended = bool(block.instructions) and block.terminator.is_terminator
            known = self._tokens, self._vectors
            with b.inserting_at(block, len(block.instructions) - is_ended):
                self._tokens, self._vectors = {}, {}  # those of later blocks are not available there
                stored = self._copy(x)
            self._tokens, self._vectors = known
            assert stored.buffer.memory is not None
            stored.buffer.memory.region = _FINAL
            self._hoists[key] = stored
        return self._hoists[key]

    def _is_writable(self, x: Value, region: int) -> bool:
        """Whether the memory of a value may be overwritten in a region: that of the graph, made in that region."""
        memory = x.buffer.memory
        is_current = memory is not None and memory.region == region and not x.buffer.is_overwritten
        return is_current and x.view.is_dense(range(x.rank))

    def _writable(self, x: Value) -> Value:
        """A row-major buffer with the elements of a value that may be overwritten: its own, or a copy."""
        return self._canonical(x) if self._is_writable(x, self._region) else self._copy(x)

    def _canonical(self, x: Value) -> Value:
        """A row-major value with the strides that its shape has without gaps, those of extents of 1 included."""
        return self._with_view(x, replace(View.dense(x.shape), offset=x.view.offset))

    def _overwritten(self, x: Value, after: Instruction | Block) -> Value:
        """The value after writes to its memory, which come after an instruction; it and its views are overwritten."""
        memory = x.buffer.memory
        assert memory is not None
        memory.writes.append(after)
        return self._make(x.dtype, x.view, replace(x.buffer, version=len(memory.writes)))

    def _copy(self, x: Value) -> Value:
        """A row-major buffer with the elements of a value."""
        result = self._buffer(x.shape, x.dtype)
        self._write(result, x)
        return result

    @contextmanager
    def _loop(self, count: int) -> Generator[ir.Value]:
        """A loop over the numbers below a count."""
        with self._loop_from(0, count) as state:
            yield state.index

    @contextmanager
    def _loop_from(self, first: int, last: int, carry: Sequence[ir.Value] = ()) -> Generator[LoopState]:
        """A loop; tokens and vectors of its body are not available after it."""
        tokens, vectors = self._tokens.copy(), self._vectors.copy()
        with self._builder.loop(first, last, carry=carry) as state:
            yield state
        self._tokens, self._vectors = tokens, vectors


def stored_type(dtype: DType) -> Type:
    """The type of an element in memory."""
    return I8 if dtype == BOOL else type_of(dtype)
