"""Conversion in both directions between calls of `llvm.matrix.*` and tensor operations, in place.

An R x C matrix in column-major order is a C x R tensor in row-major order:

    memory:  a00 a10 a20 | a01 a11 a21          R = 3, C = 2

    as a 3 x 2 matrix    a00 a01                as a 2 x 3 tensor    a00 a10 a20
                         a10 a11                                     a01 a11 a21
                         a20 a21

(A @ B)^T = B^T @ A^T, so a product needs no transposition:
     CxR      CxK   KxR

Rewrite (`raise_module`):
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

Rewrite (`write_module`):
    %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2, 3>, <0, 1>, <0, 0>, <0, 9>)
    %y = call token @llvm.tensor.typeinfo(<12 x float> %b, <3, 4>, <0, 1>, <0, 0>)
    %c = call <8 x float> @llvm.tensor.matmul(token %x, token %y)
    ->
    %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %a, i64 9, i1 false, i32 3, i32 2)
    %c = call reassoc contract <8 x float> @llvm.matrix.multiply(<12 x float> %b, <6 x float> %m, i32 4, i32 3, i32 2)

The flags state what `matmul` allows: sums in any order, with or without fused operations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Declaration, Module
from tlx.ir.parser.module import needs_lowering, parse
from tlx.ir.tensors.calls import canonicalise
from tlx.ir.tensors.inference import analyse, verify_tensors
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.transform.rewrite import replace_uses, uses
from tlx.ir.types import I1, I32, I64, VOID, FloatType, IntType, PointerType, Type, VectorType, bytes_of, is_float
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.remarks import Remarks

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
        """The flattened vector of a transposed tensor."""
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
    """Rows and columns of the matrix with the memory layout of a tensor of one or two dimensions."""
    return type_.shape[-1], type_.count // type_.shape[-1]


def matrix_stride(type_: TensorType, pitches: Sequence[int] | None) -> int:
    """From the start of one column to that of the next, in elements."""
    return (pitches[1] if pitches and type_.rank == 2 else 0) or type_.shape[-1]


def _stride_operands(type_: TensorType, pitches: Sequence[int] | None) -> list[Value]:
    """The operands stride, volatile, rows, columns."""
    rows, columns = matrix_extents(type_)
    stride = ConstInt(I64, matrix_stride(type_, pitches))
    return [stride, ConstInt(I1, 0), ConstInt(I32, rows), ConstInt(I32, columns)]


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
        there = b.gep(element, place.pointer, b.mul(loop.index, stride), "there")
        here = b.gep(element, buffer, b.mul(loop.index, rows), "here")
        source, target = (there, here) if reads else (here, there)
        if place.volatile:
            _copy_volatile(b, place, source, target, reads=reads)
        else:
            b.memcpy(target, source, rows * bytes_of(element))


def _copy_volatile(b: TensorBuilder, place: ColumnMajorMatrix, source: Value, target: Value, *, reads: bool) -> None:
    """Copy one column by a single vector access, as LLVM does."""
    column = VectorType(place.type.shape[1], place.type.element)
    word, plain = " volatile", bytes_of(place.type.element)
    source, target = b.retype(source, column), b.retype(target, column)
    marks = (word, "") if reads else ("", word)
    aligns = (place.align, plain) if reads else (plain, place.align)
    value = b.value("load", column, [source], f"load{marks[0]} {column}, {source.typed}, align {aligns[0]}", "column")
    b.emit("store", VOID, [value, target], f"store{marks[1]} {value.typed}, {target.typed}, align {aligns[1]}")


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
    found = _ALIGN.search(attributes)
    size = bytes_of(type_.element)
    return ColumnMajorMatrix(type_, args[0], args[1], volatile != 0, min(size, int(found.group(1))) if found else size)


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
    """The module with calls of `llvm.matrix.*` turned into tensor operations.

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
    _remove_declarations(fresh, _PREFIX)
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


def _remove_declarations(module: Module, prefix: str) -> None:
    """Remove the declarations of intrinsics with a prefix that are no longer called."""
    called = {i.callee for function in module.functions for i in function.instructions() if i.is_call}
    for item in list(module.items):
        if isinstance(item, Declaration) and item.name.startswith(prefix) and item.name not in called:
            module.remove(item)


STAGE: Final = "to-matrix"


def write_module(module: Module, remarks: Remarks) -> Module:
    """The module with calls of `llvm.matrix.*` instead of the tensor operations that they can express.

    Args:
        module: A module as read; it is not changed.
        remarks: Collects which operations are not converted, and why.

    Raises:
        ParseError, VerifyError: The input is no valid IR, or breaks a rule of the tensor intrinsics.
    """
    fresh = parse(str(module), module.source.name)
    verify_tensors(fresh)
    canonicalise(fresh)
    for function in fresh.functions:
        _MatrixWriter(fresh, function, remarks).run()
    _remove_declarations(fresh, "llvm.tensor.")
    return fresh


class _MatrixWriter:
    """Converts a function: first the loads that expressible operations need, then the operations."""

    def __init__(self, module: Module, function: Function, remarks: Remarks) -> None:
        self.module = module
        self.function = function
        self.tensors: FunctionTensors = analyse(module, function)
        self.remarks = remarks
        self.loaded: dict[str, Value] = {}

    def run(self) -> None:
        ops = {id(op.instruction): op for op in self.tensors.ops if self._is_expressible(op)}
        for op in self.tensors.dynamic.ops:
            self._stays(op.instruction, op.intrinsic.name, "its extents are known only at run time")
        wanted = {t.definition.result for op in ops.values() for t in op.tensors if t.kind == "load"}
        for block in self.function.blocks:
            self._write_loads(block, wanted)
        for block in self.function.blocks:
            self._write_operations(block, ops)
        self._remove_tokens()

    def _is_expressible(self, op: TensorOp) -> bool:
        problem = inexpressible_reason(op)
        if problem is not None:
            self._stays(op.instruction, op.intrinsic.name, problem)
        return problem is None

    def _stays(self, call: Instruction, name: str, reason: str) -> None:
        self.remarks.add("missed", STAGE, f"{name} stays a tensor operation: {reason}", call.span)

    # Loads -----------------------------------------------------------------------------------------------------

    def _write_loads(self, block: Block, wanted: set[str | None]) -> None:
        """Load a matrix right after each token that is needed, as memory may change before its users."""
        for token in [i for i in block.instructions if i.result is not None and i.result in wanted]:
            tensor = self.tensors.tokens[str(token.result)]
            b = self._builder(block, token, block.instructions.index(token) + 1)
            self.loaded[str(token.result)] = b.load_matrix(tensor.source, tensor.type, tensor.pitches)

    def _builder(self, block: Block, call: Instruction, index: int) -> MatrixBuilder:
        b = MatrixBuilder(self.module, self.function, block, index)
        b.span, b.debug = call.span, call.debug_location
        return b

    # Operations ------------------------------------------------------------------------------------------------

    def _write_operations(self, block: Block, ops: dict[int, TensorOp]) -> None:
        for call in list(block.instructions):
            op = ops.get(id(call))
            if op is None:
                continue
            index = block.instructions.index(call)
            b = self._builder(block, call, index)
            value = self._write(b, op)
            built = block.instructions[index : b.index]
            block.instructions.remove(call)
            self._hand_over(call, value, built)

    def _hand_over(self, call: Instruction, value: Value | None, built: list[Instruction]) -> None:
        """Replace a call by a value; the last instruction of its replacement gets the call's name."""
        if call.result is None or value is None:
            return
        last = built[-1] if built else None
        if last is not None and last.result is not None and str(last.value) == str(value):
            last.text = f"%{call.result}{last.text[1 + len(last.result) :]}"
            last.result = call.result
        else:
            replace_uses(self.function, call.result, value)

    def _write(self, b: MatrixBuilder, op: TensorOp) -> Value | None:
        """Write an operation; returns its result, None for a store."""
        name = op.intrinsic.name
        if name == "store":
            assert op.pointer is not None
            b.store_matrix(self._vector(b, op.tensors[0]), op.pointer, op.tensors[0].type, op.pitches)
            return None
        if name == "tovector":
            return self._vector(b, op.tensors[0])
        if name == "transpose":
            assert op.result is not None
            return self._stored(b, op.tensors[0], op.result.layout)
        if name == "matmul":
            return self._product(b, op.tensors)
        return self._sum(b, op)

    def _product(self, b: MatrixBuilder, tensors: tuple[Tensor, ...]) -> Local:
        """(A @ B)^T = B^T @ A^T: a row-major matrix is the transpose of a column-major one."""
        lhs, rhs = (self._stored(b, tensor, (0, 1)) for tensor in tensors)
        rows, inner = tensors[0].type.extents
        return b.multiply(rhs, lhs, (tensors[1].type.extents[1], inner, rows))

    def _sum(self, b: MatrixBuilder, op: TensorOp) -> Value:
        """Add an accumulator and a product by an ordinary instruction."""
        acc = self._stored(b, op.tensors[0], (0, 1))
        product = self._product(b, op.tensors[1:])
        opcode = "fadd" if isinstance(op.tensors[0].type.element, FloatType) else "add"
        return b.binary(opcode, acc, product, "sum")

    def _stored(self, b: MatrixBuilder, tensor: Tensor, layout: tuple[int, ...]) -> Value:
        """A matrix as a flattened vector in the order of a layout."""
        vector = self._vector(b, tensor)
        return vector if tensor.type.layout == layout else b.transpose_matrix(vector, tensor.type)

    def _vector(self, b: MatrixBuilder, tensor: Tensor) -> Value:
        """The flattened vector of a token."""
        if tensor.kind == "load":
            return self.loaded[str(tensor.definition.result)]
        source = tensor.definition.args[0]
        return source if tensor.kind == "value" else b.load_matrix(source, tensor.type, None)

    def _remove_tokens(self) -> None:
        """Remove the tokens without uses."""
        used = uses(self.function)
        for block in self.function.blocks:
            dead = [i for i in block.instructions if i.result in self.tensors.tokens and not used.get(str(i.result))]
            for token in dead:
                block.instructions.remove(token)


_PRODUCTS: Final = ("matmul", "umma", "smma", "usmma", "summa")
_EXPRESSIBLE: Final = (*_PRODUCTS, "transpose", "store", "tovector")


def inexpressible_reason(op: TensorOp) -> str | None:
    """Why an operation cannot be expressed by matrix intrinsics; None if it can."""
    name = op.intrinsic.name
    if name not in _EXPRESSIBLE:
        return "LLVM has no matrix intrinsic for it"
    least = 2 if name in (*_PRODUCTS, "transpose") else 1
    for tensor in op.tensors:
        problem = _obstacle_of_tensor(tensor, least)
        if problem is not None:
            return problem
    if op.pointer is not None and _is_in_other_space(op.pointer):
        return "it writes to another address space"
    narrow = [tensor.type.element for tensor in op.tensors if op.result and tensor.type.element != op.result.element]
    return f"it widens {narrow[0]} to {op.result.element}" if op.result and narrow else None


def _obstacle_of_tensor(tensor: Tensor, least: int) -> str | None:
    type_ = tensor.type
    if not least <= type_.rank <= 2:
        return f"{type_} is no matrix"
    if type_.is_padded:
        return f"{type_} has padding, which matrices have not"
    if str(type_.element) not in ELEMENTS:
        return f"matrices have no elements {type_.element}"
    if tensor.kind != "value" and _is_in_other_space(tensor.source):
        return "it reads another address space"
    if matrix_stride(type_, tensor.pitches) < type_.shape[-1]:
        return f"it reads {type_} at a stride of {matrix_stride(type_, tensor.pitches)}, so that columns overlap"
    return None


def _is_in_other_space(pointer: Value) -> bool:
    return isinstance(pointer.type, PointerType) and pointer.type.addrspace != 0
