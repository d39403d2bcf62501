"""Matrices in buffers on the stack, where single entries, columns and work-item vectors can be reached.

A buffer holds lines one behind the other: the columns of a matrix, or its rows where it is transposed. Narrow floats
are in their memory type; complex numbers have a buffer each part. There is room for a whole work-item vector behind the
last entry, so that reading one never leaves the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.matrices import as_tensor, from_tensor, tensor_type
from tlx.frontends.tensor_language.emit.numbers import to_memory, widened
from tlx.frontends.tensor_language.emit.values import Matrix, Parts, memory_type
from tlx.frontends.tensor_language.types import CoopMatrixType
from tlx.ir.types import I64, ArrayType, VectorType
from tlx.ir.values import Value, const_int
from tlx.types import TensorType


@dataclass(frozen=True, slots=True)
class Buffer:
    """A matrix in memory.

    Attributes:
        type: Type of the matrix.
        pointers: First element, of each part.
        by_rows: Whether lines are rows.
    """

    type: CoopMatrixType
    pointers: tuple[Value, ...]
    by_rows: bool = False

    @property
    def lines(self) -> int:
        """Number of lines."""
        return self.type.rows if self.by_rows else self.type.columns

    @property
    def length(self) -> int:
        """Entries of a line."""
        return self.type.columns if self.by_rows else self.type.rows

    @property
    def tensor(self) -> TensorType:
        """A part as a tensor."""
        return tensor_type(self.type, by_rows=self.by_rows)


def new_buffer(e: Emitter, type_: CoopMatrixType, *, by_rows: bool = False) -> Buffer:
    """A buffer that holds nothing yet."""
    count = type_.rows * type_.columns + e.lanes
    element = memory_type(type_.component)
    parts = 2 if type_.component.kind == "complex" else 1
    pointers = [e.b.retype(e.b.alloca(ArrayType(count, element), "matrix"), element) for _ in range(parts)]
    return Buffer(type_, tuple(pointers), by_rows)


def spilled(e: Emitter, matrix: Matrix, *, by_rows: bool = False) -> Buffer:
    """A buffer that holds a matrix."""
    buffer = new_buffer(e, matrix.type, by_rows=by_rows)
    for part, pointer in zip(matrix.parts, buffer.pointers, strict=True):
        e.b.tensor_store(pointer, as_tensor(e, matrix.type, part, by_rows=by_rows))
    return buffer


def reloaded(e: Emitter, buffer: Buffer) -> Matrix:
    """The matrix that a buffer holds."""
    tensor, by_rows = buffer.tensor, buffer.by_rows
    parts = (from_tensor(e, e.b.tensor_load(pointer, tensor), by_rows=by_rows) for pointer in buffer.pointers)
    return Matrix(buffer.type, tuple(parts))


def read(e: Emitter, buffer: Buffer, offset: Value | int, count: int | None = None) -> Parts:
    """Entries from an offset on, in the register type: a vector of some, or without a count the scalar that one is."""
    component = buffer.type.component
    element = memory_type(component)
    type_ = element if count is None else VectorType(count, element)
    places = (_place(e, buffer, pointer, offset) for pointer in buffer.pointers)
    return tuple(widened(e, e.b.load(type_, place, component.part.size), component) for place in places)


def write(e: Emitter, buffer: Buffer, offset: Value | int, parts: Parts) -> None:
    """Put one entry (scalars) or several (vectors), in the register type, to an offset."""
    component = buffer.type.component
    for part, pointer in zip(parts, buffer.pointers, strict=True):
        e.b.store(to_memory(e, part, component), _place(e, buffer, pointer, offset), component.part.size)


def _place(e: Emitter, buffer: Buffer, pointer: Value, offset: Value | int) -> Value:
    position = const_int(I64, offset) if isinstance(offset, int) else offset
    return e.b.gep(memory_type(buffer.type.component), pointer, position)
