"""Raising: calls to `llvm.matrix.*` become tensor operations, in place.

An R x C matrix in column-major order is a C x R tensor in row-major order:

    memory:  a00 a10 a20 | a01 a11 a21          R = 3, C = 2

    as a 3 x 2 matrix    a00 a01                as a 2 x 3 tensor    a00 a10 a20
                         a10 a11                                     a01 a11 a21
                         a20 a21

(A @ B)^T = B^T @ A^T, so a product needs no transposition:
     CxR      CxK   KxR

Rewrite:
    %c = call <8 x float> @llvm.matrix.multiply.v8f32.v6f32.v12f32(<6 x float> %a, <12 x float> %b, i32 2, i32 3, i32 4)
    ->
    %x = call token @llvm.tensor.typeinfo(<12 x float> %b, <4, 3>, <0, 1>, <0, 0>)
    %y = call token @llvm.tensor.typeinfo(<6 x float> %a, <3, 2>, <0, 1>, <0, 0>)
    %c = call <8 x float> @llvm.tensor.matmul(token %x, token %y)

Rewrite, where the stride is a constant:
    %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %p, i64 9, i1 false, i32 2, i32 3)
    ->
    %t = call token @llvm.tensor.load(ptr elementtype(float) %p, <3, 2>, <0, 1>, <0, 0>, <0, 9>)
    %m = call <6 x float> @llvm.tensor.tovector(token %t)

Strides of tensors have 32 bits, and tensors have the alignment of their elements. Other matrices are copied column by
column through a dense buffer on the stack; a volatile matrix is copied by volatile accesses of whole columns, as LLVM
does. Calls that LLVM's verifier rejects, and matrices whose element type tensors do not support (`x86_fp80`), are left
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Declaration, Module
from tlx.ir.parser.module import needs_lowering, parse
from tlx.ir.tensors.builder import TensorBuilder
from tlx.ir.types import I64, VOID, FloatType, IntType, PointerType, Type, VectorType, bytes_of
from tlx.ir.values import ConstInt, Value

ELEMENTS: Final = ("i8", "i16", "i32", "i64", "half", "bfloat", "float", "double")


def transposed_type(vector: Type, rows: int, columns: int) -> TensorType | None:
    """The type of a flattened R x C matrix as a row-major C x R tensor; None if there is no such tensor type."""
    if not isinstance(vector, VectorType) or vector.scalable or rows <= 0 or columns <= 0:
        return None
    element = vector.element
    if not isinstance(element, (IntType, FloatType)) or str(element) not in ELEMENTS:
        return None
    return TensorType.dense(element, (columns, rows)) if vector.count == rows * columns else None


def constant_extents(values: Sequence[Value]) -> list[int]:
    """The extents among the operands of a call; empty if one is not constant."""
    known = [value.value for value in values if isinstance(value, ConstInt)]
    return known if len(known) == len(values) else []


_PREFIX: Final = "llvm.matrix."

Rule = Callable[[TensorBuilder, Instruction], Value | bool | None]
"""Builds the replacement of a call: returns its result, or True for a store; None or False if it cannot be replaced."""


_STRIDES: Final = 1 << 31
_ALIGN: Final = re.compile(r"\balign[ (]+(\d+)")


@dataclass(frozen=True)
class ColumnMajorMatrix:
    """The address of a matrix that is loaded or stored.

    Attributes:
        type: The matrix as a tensor: one row for each of its columns.
        pointer: Its first element.
        stride: From the start of one column to that of the next, in elements.
        volatile: Whether the accesses are volatile.
        align: Alignment of every column, in bytes.
    """

    type: TensorType
    pointer: Value
    stride: Value
    volatile: bool
    align: int

    @property
    def pitches(self) -> tuple[int, int] | None:
        """The pitches of a tensor at this address, None if no tensor has this layout."""
        regular = isinstance(self.stride, ConstInt) and self.type.shape[1] <= self.stride.value < _STRIDES
        if self.volatile or self.align < bytes_of(self.type.element) or not regular:
            return None
        return (0, self.stride.value) if isinstance(self.stride, ConstInt) else None


def raise_load(b: TensorBuilder, call: Instruction) -> Value | None:
    """`llvm.matrix.column.major.load(p, stride, volatile, rows, columns)`; None if it is malformed."""
    place = _matrix_access(call.args, call.arg_attributes[0] if call.arg_attributes else "", call.type)
    if place is None:
        return None
    if place.pitches is not None:
        return b.tovector(b.tensor_load(place.pointer, place.type, place.pitches))
    buffer = b.alloca(place.type.vector, "matrix")
    _copy_columns(b, place, buffer, reads=True)
    return b.load(place.type.vector, buffer, bytes_of(place.type.element))


def raise_store(b: TensorBuilder, call: Instruction) -> bool:
    """`llvm.matrix.column.major.store(m, p, stride, volatile, rows, columns)`; False if it is malformed."""
    if len(call.args) < 2:
        return False
    matrix = call.args[0]
    place = _matrix_access(call.args[1:], call.arg_attributes[1], matrix.type)
    if place is None:
        return False
    if place.pitches is not None:
        b.tensor_store(place.pointer, b.typeinfo(matrix, place.type), place.pitches)
        return True
    buffer = b.alloca(place.type.vector, "matrix")
    b.store(matrix, buffer, bytes_of(place.type.element))
    _copy_columns(b, place, buffer, reads=False)
    return True


def _copy_columns(b: TensorBuilder, place: ColumnMajorMatrix, buffer: Value, *, reads: bool) -> None:
    """Copy columns between an address and a dense matrix."""
    columns, rows = place.type.shape
    element = place.type.element
    stride = b.cast("sext", place.stride, I64) if place.stride.type != I64 else place.stride
    with b.loop(0, columns, name="column") as loop:
        there = b.gep(element, place.pointer, b.mul(loop.index, stride), "matrix.column")
        here = b.gep(element, buffer, b.mul(loop.index, rows), "buffer.column")
        source, destination = (there, here) if reads else (here, there)
        if place.volatile:
            _copy_volatile(b, place, source, destination, reads=reads)
        else:
            b.memcpy(destination, source, rows * bytes_of(element))


def _copy_volatile(
    b: TensorBuilder, place: ColumnMajorMatrix, source: Value, destination: Value, *, reads: bool
) -> None:
    """Copy one column by a single vector access, as LLVM does."""
    column = VectorType(place.type.shape[1], place.type.element)
    word, plain = " volatile", bytes_of(place.type.element)
    source, destination = b.retype(source, column), b.retype(destination, column)
    marks = (word, "") if reads else ("", word)
    aligns = (place.align, plain) if reads else (plain, place.align)
    value = b.value("load", column, [source], f"load{marks[0]} {column}, {source.typed}, align {aligns[0]}", "column")
    b.emit(
        "store", VOID, [value, destination], f"store{marks[1]} {value.typed}, {destination.typed}, align {aligns[1]}"
    )


def _matrix_access(args: list[Value], attributes: str, vector: object) -> ColumnMajorMatrix | None:
    """The address of a call's matrix, from its operands `pointer, stride, volatile, rows, columns`."""
    extents = constant_extents(args[2:])
    if len(extents) != 3 or not isinstance(args[0].type, PointerType) or not isinstance(args[1].type, IntType):
        return None
    if not isinstance(vector, VectorType):
        return None
    volatile, rows, columns = extents
    type_ = transposed_type(vector, rows, columns)
    if type_ is None:
        return None
    match = _ALIGN.search(attributes)
    size = bytes_of(type_.element)
    return ColumnMajorMatrix(type_, args[0], args[1], volatile != 0, min(size, int(match.group(1))) if match else size)


def raise_multiply(b: TensorBuilder, call: Instruction) -> Value | None:
    """`llvm.matrix.multiply(A, B, rows, inner, columns)`; None if it is malformed or no tensor operation."""
    extents = constant_extents(call.args[2:])
    if len(extents) != 3:
        return None
    rows, inner, columns = extents
    lhs, rhs = call.args[:2]
    types = (
        transposed_type(rhs.type, inner, columns),
        transposed_type(lhs.type, rows, inner),
        transposed_type(call.type, rows, columns),
    )
    x, y, result = types
    if x is None or y is None or result is None or not x.element == y.element == result.element:
        return None
    return b.matmul(b.typeinfo(rhs, x), b.typeinfo(lhs, y), result)


def raise_transpose(b: TensorBuilder, call: Instruction) -> Value | None:
    """`llvm.matrix.transpose(A, rows, columns)`; None if it is malformed or no tensor operation."""
    extents = constant_extents(call.args[1:])
    if len(extents) != 2:
        return None
    type_ = transposed_type(call.args[0].type, *extents)
    if type_ is None or call.type != call.args[0].type:
        return None
    return b.transpose(b.typeinfo(call.args[0], type_), (1, 0), type_.transposed((1, 0)))


_RULES: Final[dict[str, Rule]] = {
    "multiply": raise_multiply,
    "transpose": raise_transpose,
    "column.major.load": raise_load,
    "column.major.store": raise_store,
    "columnwise.load": raise_load,  # as LLVM 11 names them
    "columnwise.store": raise_store,
}


def raise_module(module: Module) -> Module | None:
    """The module with calls to `llvm.matrix.*` turned into tensor operations.

    Args:
        module: A module as read; it is not changed.

    Returns:
        A new module, or None if there is no such call.

    Raises:
        ParseError: A function with such calls cannot be read.
    """
    fresh = parse(str(module), module.source.name, lambda body: needs_lowering(body) or f"@{_PREFIX}" in body)
    raised = [_raise_block(fresh, f, block) for f in fresh.functions for block in list(f.blocks)]
    if not any(raised):
        return None
    remove_declarations(fresh, _PREFIX)
    return fresh


def _raise_block(module: Module, function: Function, block: Block) -> bool:
    """Raise the calls of a block; replacements may split the block or add to the entry of the function."""
    b = TensorBuilder(module, function, block, 0)
    raised = False
    while b.index < len(b.block.instructions):
        if _raise_call(b, b.block.instructions[b.index]):
            raised = True
        else:
            b.index += 1
    return raised


def _raise_call(b: TensorBuilder, call: Instruction) -> bool:
    """Build the replacement of a call before it, and remove it; False for other instructions."""
    rule = _rule(call.callee)
    if rule is None:
        return False
    b.span, b.debug = call.span, call.debug_location
    built = rule(b, call)
    if built is None or built is False:
        return False
    if call.result is not None:
        _rename(b.block.instructions[b.index - 1], call.result)
    del b.block.instructions[b.index]
    return True


def _rename(last: Instruction, name: str) -> None:
    """Give the last instruction of a replacement the name of the call."""
    assert last.result is not None
    last.text = f"%{name}{last.text[1 + len(last.result) :]}"
    last.result = name


def _rule(callee: str | None) -> Rule | None:
    if callee is None or not callee.startswith(_PREFIX):
        return None
    operation = callee.removeprefix(_PREFIX)
    return next((rule for name, rule in _RULES.items() if operation == name or operation.startswith(f"{name}.")), None)


def remove_declarations(module: Module, prefix: str) -> None:
    """Remove the declarations of intrinsics with a prefix that are no longer called."""
    called = {i.callee for function in module.functions for i in function.instructions() if i.is_call}
    for item in list(module.items):
        if isinstance(item, Declaration) and item.name.startswith(prefix) and item.name not in called:
            module.remove(item)
