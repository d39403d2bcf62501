"""Cooperative matrices as flattened vectors, column by column, as tensors, and as buffers on the stack.

    coopmatrix<f32x8x4,matrix_acc>  ->  <32 x float>: rows 0..7 of column 0, of column 1, ...
                                        tensor: memory shape <4, 8>, layout <1, 0>

A matrix is the same in all work-items of a subgroup, so it is one value. Its element type is that of tensors (`bfloat`,
`half`); it is widened to the register type to compute with it, which the lowering does on the way through registers.

A buffer holds lines one behind the other: the columns of a matrix, or its rows where it is transposed. Narrow floats
are in their memory type; complex numbers have a buffer each part. There is room for a whole work-item vector behind the
last entry, so that reading one never leaves the buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tlx.frontends.tensor_language.emit.arithmetic import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import from_memory, splat, to_memory
from tlx.frontends.tensor_language.emit.values import Matrix, Parts, memory_type, register_type, tensor_element
from tlx.frontends.tensor_language.syntax.nodes import Instruction
from tlx.frontends.tensor_language.types import F32, CoopMatrixType, ScalarType
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import I64, ArrayType, VectorType
from tlx.ir.values import Local, Value, const_int


def matrix_type(i: Instruction) -> CoopMatrixType:
    """The type of the matrix that an instruction gives."""
    assert isinstance(i.type, CoopMatrixType)
    return i.type


def tensor_type(type_: CoopMatrixType, *, by_rows: bool = False) -> TensorType:
    """A part of a matrix as a tensor, logically rows x columns: column-major, or row-major."""
    element = tensor_element(type_.component)
    if by_rows:
        return TensorType.dense(element, type_.shape)
    return TensorType(element, (type_.columns, type_.rows), (1, 0), (0, 0))


def as_tensor(e: Emitter, type_: CoopMatrixType, part: Value, *, by_rows: bool) -> Local:
    """A part of a matrix as a tensor; by rows its entries change places."""
    token = e.b.typeinfo(part, tensor_type(type_))
    return e.b.typeinfo(e.b.transpose(token, (0, 1)), tensor_type(type_, by_rows=True)) if by_rows else token


def from_tensor(e: Emitter, token: Local, *, by_rows: bool) -> Value:
    """The part of a matrix that a tensor is."""
    return e.b.transpose(token, (1, 0)) if by_rows else e.b.tovector(token)


def _vector_type(type_: CoopMatrixType) -> VectorType:
    """The flattened vector of a part in the register type."""
    return VectorType(type_.rows * type_.columns, register_type(type_.component))


def _widened(e: Emitter, matrix: Matrix) -> Parts:
    """The parts in the register type, to compute with."""
    return tuple(e.b.cast("fpext", part, _vector_type(matrix.type)) for part in matrix.parts)


def round_matrix(e: Emitter, type_: CoopMatrixType, parts: Parts) -> Matrix:
    """A matrix of parts in the register type; narrow floats are rounded to nearest, ties to even."""
    vector = VectorType(type_.rows * type_.columns, tensor_element(type_.component))
    return Matrix(type_, tuple(e.b.cast("fptrunc", part, vector) for part in parts))


def splat_matrix(e: Emitter, type_: CoopMatrixType, parts: Parts) -> Matrix:
    """A matrix with one (register) value in every entry."""
    return round_matrix(e, type_, tuple(splat(e, part, type_.rows * type_.columns) for part in parts))


def convert_matrix(e: Emitter, matrix: Matrix, type_: CoopMatrixType) -> Matrix:
    """A matrix cast to another component type or use."""
    source, component = matrix.type.component, type_.component
    if source == component:
        return Matrix(type_, matrix.parts)
    if source.kind == component.kind == "float":
        vector = VectorType(type_.rows * type_.columns, tensor_element(component))
        opcode = "fptrunc" if component.bits < source.bits else "fpext"
        if component.bits != source.bits:
            return Matrix(type_, (e.b.cast(opcode, matrix.value, vector),))
        return round_matrix(e, type_, _widened(e, matrix))
    return round_matrix(e, type_, convert(e, _widened(e, matrix), source, component))


def map_matrices(
    e: Emitter,
    result: CoopMatrixType,
    function: Callable[[ScalarType, tuple[Parts, ...]], Parts],
    *operands: Matrix,
) -> Matrix:
    """A function of matrices, entry by entry.

    Args:
        e: The emitter.
        result: Type of the result.
        function: Given the type that is computed in and the parts of the operands, gives the parts of the result.
        operands: The matrices, of one component type.
    """
    component = operands[0].type.component
    computed = F32 if component.is_narrow_float else component
    return round_matrix(e, result, function(computed, tuple(_widened(e, operand) for operand in operands)))


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


def spill(e: Emitter, matrix: Matrix, *, by_rows: bool = False) -> Buffer:
    """A buffer that holds a matrix."""
    buffer = new_buffer(e, matrix.type, by_rows=by_rows)
    for part, pointer in zip(matrix.parts, buffer.pointers, strict=True):
        e.b.tensor_store(pointer, as_tensor(e, matrix.type, part, by_rows=by_rows))
    return buffer


def reload(e: Emitter, buffer: Buffer) -> Matrix:
    """The matrix that a buffer holds."""
    tensor, by_rows = buffer.tensor, buffer.by_rows
    parts = (from_tensor(e, e.b.tensor_load(pointer, tensor), by_rows=by_rows) for pointer in buffer.pointers)
    return Matrix(buffer.type, tuple(parts))


def read_entries(e: Emitter, buffer: Buffer, offset: Value | int, count: int | None = None) -> Parts:
    """Entries from an offset on, in the register type: a vector of some, or without a count the scalar that one is."""
    component = buffer.type.component
    element = memory_type(component)
    type_ = element if count is None else VectorType(count, element)
    places = (_place(e, buffer, pointer, offset) for pointer in buffer.pointers)
    return tuple(from_memory(e, e.b.load(type_, place, component.part.size), component) for place in places)


def write_entries(e: Emitter, buffer: Buffer, offset: Value | int, parts: Parts) -> None:
    """Put one entry (scalars) or several (vectors), in the register type, to an offset."""
    component = buffer.type.component
    for part, pointer in zip(parts, buffer.pointers, strict=True):
        e.b.store(to_memory(e, part, component), _place(e, buffer, pointer, offset), component.part.size)


def _place(e: Emitter, buffer: Buffer, pointer: Value, offset: Value | int) -> Value:
    position = const_int(I64, offset) if isinstance(offset, int) else offset
    return e.b.gep(memory_type(buffer.type.component), pointer, position)
