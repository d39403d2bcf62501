"""Matrices as tensors, and calls of `llvm.matrix.*` on them: an R x C matrix by columns is a C x R tensor by rows.

memory:  a00 a10 a20 | a01 a11 a21          R = 3, C = 2

as a 3 x 2 matrix    a00 a01                as a 2 x 3 tensor    a00 a10 a20
                     a10 a11                                     a01 a11 a21
                     a20 a21

tensor 2 x 3 in memory   a00 a01 a02 | a10 a11 a12     =     a matrix of 3 rows and 2 columns
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.instructions import Builder
from tlx.ir.types import I1, I32, I64, VOID, FloatType, IntType, Type, VectorType, is_float
from tlx.ir.values import ConstInt, Local, Value

ELEMENTS: Final = ("i8", "i16", "i32", "i64", "half", "bfloat", "float", "double")


def transposed_type(vector: Type, rows: int, columns: int) -> TensorType | None:
    """The type of a flattened R x C matrix as the row-major C x R tensor that it is; None if no tensor is like that."""
    if not isinstance(vector, VectorType) or vector.scalable or rows <= 0 or columns <= 0:
        return None
    element = vector.element
    if not isinstance(element, (IntType, FloatType)) or str(element) not in ELEMENTS:
        return None
    return TensorType.dense(element, (columns, rows)) if vector.count == rows * columns else None


def constant_extents(values: Sequence[Value]) -> list[int]:
    """The extents among a call's operands; nothing where one is no constant."""
    known = [value.value for value in values if isinstance(value, ConstInt)]
    return known if len(known) == len(values) else []


class MatrixBuilder(Builder):
    """A `Builder` that also emits `llvm.matrix.*` calls, under their mangled names."""

    def load_matrix(self, pointer: Value, type_: TensorType, pitches: Sequence[int] | None) -> Local:
        """The flattened vector of a tensor in memory."""
        pointer = self.retype(pointer, type_.element)
        args = [pointer, *_stride_operands(type_, pitches)]
        return self.call_intrinsic("llvm.matrix.column.major.load", [type_.vector, I64], type_.vector, args, "matrix")

    def store_matrix(self, vector: Value, pointer: Value, type_: TensorType, pitches: Sequence[int] | None) -> None:
        """Write a flattened vector to memory."""
        pointer = self.retype(pointer, type_.element)
        args = [vector, pointer, *_stride_operands(type_, pitches)]
        self.call_intrinsic("llvm.matrix.column.major.store", [type_.vector, I64], VOID, args)

    def transpose_matrix(self, vector: Value, type_: TensorType) -> Local:
        """A tensor's flattened vector in the other order."""
        columns, rows = type_.shape
        args = [vector, ConstInt(I32, rows), ConstInt(I32, columns)]
        return self.call_intrinsic("llvm.matrix.transpose", [vector.type], vector.type, args, "transposed")

    def multiply(self, lhs: Value, rhs: Value, extents: tuple[int, int, int]) -> Local:
        """The product of an R x K and a K x C matrix, both column by column; `extents` are R, K, C."""
        rows, _, columns = extents
        assert isinstance(lhs.type, VectorType)
        result = VectorType(rows * columns, lhs.type.element)
        overloads: list[Type] = [result, lhs.type, rhs.type]
        args = [lhs, rhs, *(ConstInt(I32, extent) for extent in extents)]
        product = self.call_intrinsic("llvm.matrix.multiply", overloads, result, args, "product")
        if is_float(result):
            call = self.block.instructions[self.index - 1]
            call.text = call.text.replace(" = call ", " = call reassoc contract ", 1)
            call.flags = ("reassoc", "contract")
        return product


def matrix_extents(type_: TensorType) -> tuple[int, int]:
    """Rows and columns of the matrix that a tensor of one or two dimensions lies like."""
    return type_.shape[-1], type_.count // type_.shape[-1]


def matrix_stride(type_: TensorType, pitches: Sequence[int] | None) -> int:
    """From the start of one column to that of the next, in elements."""
    return (pitches[1] if pitches and type_.rank == 2 else 0) or type_.shape[-1]


def _stride_operands(type_: TensorType, pitches: Sequence[int] | None) -> list[Value]:
    """The operands stride, volatile, rows, columns."""
    rows, columns = matrix_extents(type_)
    stride = ConstInt(I64, matrix_stride(type_, pitches))
    return [stride, ConstInt(I1, 0), ConstInt(I32, rows), ConstInt(I32, columns)]
