"""The inverse of raising: tensor operations become calls to `llvm.matrix.*` where these can express them.

Rewrite:
    %x = call token @llvm.tensor.load(ptr elementtype(float) %a, <2, 3>, <0, 1>, <0, 0>, <0, 9>)
    %y = call token @llvm.tensor.typeinfo(<12 x float> %b, <3, 4>, <0, 1>, <0, 0>)
    %c = call <8 x float> @llvm.tensor.matmul(token %x, token %y)
    ->
    %m = call <6 x float> @llvm.matrix.column.major.load.v6f32.i64(ptr %a, i64 9, i1 false, i32 3, i32 2)
    %c = call reassoc contract <8 x float> @llvm.matrix.multiply(<12 x float> %b, <6 x float> %m, i32 4, i32 3, i32 2)

The flags state what `matmul` allows: sums in any order, with or without fused operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tlx.frontends.matrix.raising import ELEMENTS, remove_declarations
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.parser.module import parse
from tlx.ir.rewrite import replace_uses, uses
from tlx.ir.tensors.calls import canonicalise
from tlx.ir.tensors.inference import analyse, verify_tensors
from tlx.ir.tensors.model import FunctionTensors, Tensor, TensorOp
from tlx.ir.types import I1, I32, I64, VOID, FloatType, PointerType, Type, VectorType, is_float
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.remarks import Remarks


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


STAGE: Final = "to-matrix"


def write_module(module: Module, remarks: Remarks) -> Module:
    """The module with calls to `llvm.matrix.*` instead of the tensor operations that they can express.

    Args:
        module: A module as read; it is not changed.
        remarks: Collects which operations are not converted, and why.

    Raises:
        ParseError, VerifyError: The input is not valid IR, or breaks a rule of the tensor intrinsics.
    """
    fresh = parse(str(module), module.source.name)
    verify_tensors(fresh)
    canonicalise(fresh)
    for function in fresh.functions:
        _MatrixWriter(fresh, function, remarks).run()
    remove_declarations(fresh, "llvm.tensor.")
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
            self._report_unconverted(op.instruction, op.intrinsic.name, "its extents are known only at run time")
        operands = {t.definition.result for op in ops.values() for t in op.tensors if t.kind == "load"}
        for block in self.function.blocks:
            self._write_loads(block, operands)
        for block in self.function.blocks:
            self._write_operations(block, ops)
        self._remove_tokens()

    def _is_expressible(self, op: TensorOp) -> bool:
        problem = inexpressible_reason(op)
        if problem is not None:
            self._report_unconverted(op.instruction, op.intrinsic.name, problem)
        return problem is None

    def _report_unconverted(self, call: Instruction, name: str, reason: str) -> None:
        self.remarks.add("missed", STAGE, f"{name} stays a tensor operation: {reason}", call.span)

    # Loads -----------------------------------------------------------------------------------------------------

    def _write_loads(self, block: Block, operands: set[str | None]) -> None:
        """Load a matrix right after each token of `operands`, as memory may change before its users."""
        for token in [i for i in block.instructions if i.result is not None and i.result in operands]:
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
        return f"{type_} is not a matrix"
    if type_.is_padded:
        return f"{type_} has padding, which matrices cannot have"
    if str(type_.element) not in ELEMENTS:
        return f"matrices have no elements {type_.element}"
    if tensor.kind != "value" and _is_in_other_space(tensor.source):
        return "it reads another address space"
    if matrix_stride(type_, tensor.pitches) < type_.shape[-1]:
        return f"it reads {type_} at a stride of {matrix_stride(type_, tensor.pitches)}, so that columns overlap"
    return None


def _is_in_other_space(pointer: Value) -> bool:
    return isinstance(pointer.type, PointerType) and pointer.type.addrspace != 0
