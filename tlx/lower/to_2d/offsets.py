"""Constant byte offsets of getelementptr."""

from __future__ import annotations

from tlx.ir.module import Instruction
from tlx.ir.types import ArrayType, FloatType, IntType, PointerType, Type, VectorType, bytes_of
from tlx.ir.values import ConstInt


def size_of(type_: Type | None) -> int | None:
    """Bytes between neighbours of a type in an array; None for structs and other types without a plain size."""
    if isinstance(type_, (IntType, FloatType)):
        size = bytes_of(type_)
        return size if size in (1, 2, 4, 8) else None
    if isinstance(type_, PointerType):
        return 8
    if isinstance(type_, ArrayType):
        element = size_of(type_.element)
        return None if element is None else type_.count * element
    if isinstance(type_, VectorType) and not type_.scalable:
        element = size_of(type_.element)
        return None if element is None else 1 << (type_.count * element - 1).bit_length()
    return None


def gep_offset(instruction: Instruction) -> int | None:
    """Bytes a getelementptr adds; None if that is not a constant known here."""
    type_ = instruction.source_type
    offset = 0
    for position, index in enumerate(instruction.operands[1:]):
        if position > 0:
            if not isinstance(type_, (ArrayType, VectorType)):
                return 0 if _all_zero(instruction) else None
            type_ = type_.element
        step = size_of(type_)
        if not isinstance(index, ConstInt):
            return None
        if index.value != 0:
            if step is None:
                return None
            offset += index.value * step
    return offset


def _all_zero(instruction: Instruction) -> bool:
    return all(isinstance(index, ConstInt) and index.value == 0 for index in instruction.operands[1:])
