"""Loads and stores of matrices whose columns lie `stride` elements apart.

Rewrite, where the stride is a constant:
    %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %p, i64 9, i1 false, i32 2, i32 3)
    ->
    %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <3, 2>, <0, 1>, <0, 0>, <0, 9>)
    %m = call <6 x float> @llvm.tensor.tovector(token %t)

Strides of tensors have 32 bits and tensors are as aligned as their elements are. Other matrices go through a dense copy
on the stack, column by column; that of a volatile one is made by volatile accesses, each of a whole column as in LLVM.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tlx.frontends.matrix.shapes import flipped, numbers
from tlx.ir.module import Instruction
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I64, VOID, IntType, PointerType, VectorType, bytes_of
from tlx.ir.values import ConstInt, Value
from tlx.types import TensorType

_STRIDES: Final = 1 << 31
_ALIGN: Final = re.compile(r"\balign[ (]+(\d+)")


@dataclass(frozen=True)
class Place:
    """Where a matrix is loaded from or stored to.

    Attributes:
        type: The matrix as a tensor: one row for each of its columns.
        pointer: Its first element.
        stride: From the start of one column to that of the next, in elements.
        volatile: Whether the accesses must be made as they are written.
        align: Alignment of every column, in bytes.
    """

    type: TensorType
    pointer: Value
    stride: Value
    volatile: bool
    align: int

    @property
    def pitches(self) -> tuple[int, int] | None:
        """The pitches of a tensor that lies there, None where no tensor does."""
        regular = isinstance(self.stride, ConstInt) and self.type.shape[1] <= self.stride.value < _STRIDES
        if self.volatile or self.align < bytes_of(self.type.element) or not regular:
            return None
        return (0, self.stride.value) if isinstance(self.stride, ConstInt) else None


def load(b: TensorBuilder, call: Instruction) -> Value | None:
    """`llvm.matrix.column.major.load(p, stride, volatile, rows, columns)`; None if it is malformed."""
    place = _place(call.args, call.arg_attributes[0] if call.arg_attributes else "", call.type)
    if place is None:
        return None
    if place.pitches is not None:
        return b.tovector(b.tensor_load(place.pointer, place.type, place.pitches))
    buffer = b.alloca(place.type.vector, "matrix")
    _copy_columns(b, place, buffer, reads=True)
    return b.load(place.type.vector, buffer, bytes_of(place.type.element))


def store(b: TensorBuilder, call: Instruction) -> bool:
    """`llvm.matrix.column.major.store(m, p, stride, volatile, rows, columns)`; False if it is malformed."""
    if len(call.args) < 2:
        return False
    matrix = call.args[0]
    place = _place(call.args[1:], call.arg_attributes[1], matrix.type)
    if place is None:
        return False
    if place.pitches is not None:
        b.tensor_store(place.pointer, b.typeinfo(matrix, place.type), place.pitches)
        return True
    buffer = b.alloca(place.type.vector, "matrix")
    b.store(matrix, buffer, bytes_of(place.type.element))
    _copy_columns(b, place, buffer, reads=False)
    return True


def _copy_columns(b: TensorBuilder, place: Place, buffer: Value, *, reads: bool) -> None:
    """Between a place and a dense matrix."""
    columns, rows = place.type.shape
    element = place.type.element
    stride = b.cast("sext", place.stride, I64) if place.stride.type != I64 else place.stride
    with b.loop(0, columns, name="column") as loop:
        there = b.gep(element, place.pointer, b.mul(loop.index, stride), "there")
        here = b.gep(element, buffer, b.mul(loop.index, rows), "here")
        source, target = (there, here) if reads else (here, there)
        if place.volatile:
            _copy_volatile(b, place, source, target, reads=reads)
        else:
            b.memcpy(target, source, rows * bytes_of(element))


def _copy_volatile(b: TensorBuilder, place: Place, source: Value, target: Value, *, reads: bool) -> None:
    """One column, by one access of a vector as LLVM makes it."""
    column = VectorType(place.type.shape[1], place.type.element)
    word, plain = " volatile", bytes_of(place.type.element)
    source, target = b.retype(source, column), b.retype(target, column)
    marks = (word, "") if reads else ("", word)
    aligns = (place.align, plain) if reads else (plain, place.align)
    value = b.value("load", column, [source], f"load{marks[0]} {column}, {source.typed}, align {aligns[0]}", "column")
    b.emit("store", VOID, [value, target], f"store{marks[1]} {value.typed}, {target.typed}, align {aligns[1]}")


def _place(args: list[Value], attributes: str, vector: object) -> Place | None:
    """Where a call's matrix lies, from its operands `pointer, stride, volatile, rows, columns`."""
    extents = numbers(args[2:])
    if len(extents) != 3 or not isinstance(args[0].type, PointerType) or not isinstance(args[1].type, IntType):
        return None
    if not isinstance(vector, VectorType):
        return None
    volatile, rows, columns = extents
    type_ = flipped(vector, rows, columns)
    if type_ is None:
        return None
    found = _ALIGN.search(attributes)
    size = bytes_of(type_.element)
    return Place(type_, args[0], args[1], volatile != 0, min(size, int(found.group(1))) if found else size)
