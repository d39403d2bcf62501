"""Matrices as tensors: an R x C matrix lies column by column, so that it is a row-major C x R tensor, its transpose.

memory:  a00 a10 a20 | a01 a11 a21          R = 3, C = 2

as a 3 x 2 matrix    a00 a01                as a 2 x 3 tensor    a00 a10 a20
                     a10 a11                                     a01 a11 a21
                     a20 a21
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.ir.types import FloatType, IntType, Type, VectorType
from tlx.ir.values import ConstInt, Value
from tlx.types import TensorType

ELEMENTS: Final = ("i8", "i16", "i32", "i64", "half", "bfloat", "float", "double")


def flipped(vector: Type, rows: int, columns: int) -> TensorType | None:
    """The type of a flattened R x C matrix as the row-major C x R tensor that it is; None if no tensor is like that."""
    if not isinstance(vector, VectorType) or vector.scalable or rows <= 0 or columns <= 0:
        return None
    element = vector.element
    if not isinstance(element, (IntType, FloatType)) or str(element) not in ELEMENTS:
        return None
    return TensorType.dense(element, (columns, rows)) if vector.count == rows * columns else None


def numbers(values: Sequence[Value]) -> list[int]:
    """The extents among a call's operands; nothing where one is no constant."""
    known = [value.value for value in values if isinstance(value, ConstInt)]
    return known if len(known) == len(values) else []
