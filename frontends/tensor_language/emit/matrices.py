"""Cooperative matrices as flattened vectors, column by column, and what they are as tensors.

    coopmatrix<f32x8x4,matrix_acc>  ->  <32 x float>: rows 0..7 of column 0, of column 1, ...
                                        tensor: memory shape <4, 8>, layout <1, 0>

A matrix is the same in all work-items of a subgroup, so it is one value. Its element type is that of tensors (`bfloat`,
`half`); it is widened to the register type to compute with it, which the lowering does on the way through registers.
"""

from __future__ import annotations

from collections.abc import Callable

from tlx.frontends.tensor_language.ast.base import Instruction
from tlx.frontends.tensor_language.emit.conversions import convert
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import splat
from tlx.frontends.tensor_language.emit.values import Matrix, Parts, register_type, tensor_element
from tlx.frontends.tensor_language.types import F32, CoopMatrixType, ScalarType
from tlx.ir.types import VectorType
from tlx.ir.values import Local, Value
from tlx.types import TensorType


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


def rounded(e: Emitter, type_: CoopMatrixType, parts: Parts) -> Matrix:
    """A matrix of parts in the register type; narrow floats are rounded to nearest, ties to even."""
    vector = VectorType(type_.rows * type_.columns, tensor_element(type_.component))
    return Matrix(type_, tuple(e.b.cast("fptrunc", part, vector) for part in parts))


def splat_matrix(e: Emitter, type_: CoopMatrixType, parts: Parts) -> Matrix:
    """A matrix with one (register) value in every entry."""
    return rounded(e, type_, tuple(splat(e, part, type_.rows * type_.columns) for part in parts))


def converted(e: Emitter, matrix: Matrix, type_: CoopMatrixType) -> Matrix:
    """A matrix cast to another component type or use."""
    source, component = matrix.type.component, type_.component
    if source == component:
        return Matrix(type_, matrix.parts)
    if source.kind == component.kind == "float":
        vector = VectorType(type_.rows * type_.columns, tensor_element(component))
        opcode = "fptrunc" if component.bits < source.bits else "fpext"
        if component.bits != source.bits:
            return Matrix(type_, (e.b.cast(opcode, matrix.value, vector),))
        return rounded(e, type_, _widened(e, matrix))
    return rounded(e, type_, convert(e, _widened(e, matrix), source, component))


def mapped(
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
    return rounded(e, result, function(computed, tuple(_widened(e, operand) for operand in operands)))
