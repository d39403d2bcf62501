"""Calls that use tokens: operations and stores.

%r = call <16 x float> @tensor_broadcast(i32 %t, double 2.5)
call void @tensor_store_f32(ptr %p, i32 %u, double 0.0)
%s = call i16 @tensor_relu(i32 %w)
->
%r = call <16 x float> @llvm.tensor.broadcast(token %t, float 2.5)
call void @llvm.tensor.store(ptr elementtype(float) %p, token %u, <2 x i32> zeroinitializer)
%result = call <2 x i8> @llvm.tensor.relu(token %w)
%s = bitcast <2 x i8> %result to i16
"""

from __future__ import annotations

from collections.abc import Sequence

from tlx.diagnostics import Note
from tlx.frontends.c_header.calls import PlaceholderCall, placeholder_calls
from tlx.frontends.c_header.coerce import Coercion, passed_bits
from tlx.frontends.c_header.symbols import ELEMENTS, PREFIX, operation_name
from tlx.frontends.c_header.tokens import StrayTokenError, Token, check_count, emit, pointer_attribute
from tlx.intrinsics import Kind, Operand
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.tensor_calls import expanded_form, operand_span
from tlx.ir.types import (
    DOUBLE,
    I32,
    TOKEN,
    VOID,
    IntType,
    PointerType,
    Type,
    VectorType,
    bits_of,
    is_scalar_number,
)
from tlx.ir.values import ConstInt, Local, Value, int_elements
from tlx.types import TensorType


def make_operations(module: Module, function: Function, tokens: dict[str, Token]) -> None:
    """Rewrite the calls of a function that take tokens.

    Raises:
        VerifyError: A call has arguments that its operation does not take.
    """
    coercion = Coercion(module, function)
    for call in placeholder_calls(function):
        if call.placeholder.intrinsic.result != "token":
            _Operation(call, coercion, tokens).rewrite()


class _Operation:
    """One call."""

    def __init__(self, call: PlaceholderCall, coercion: Coercion, tokens: dict[str, Token]) -> None:
        self.call = call
        self.coercion = coercion
        self.tokens = tokens
        self.arguments = self._arguments()

    def rewrite(self) -> None:
        """Make it a call of the intrinsic."""
        call, row = self.call, self.call.placeholder.intrinsic
        values = [self._dims(operand, value) for operand, value in self.arguments]
        type_ = self._result(values) if row.result == "vector" else VOID
        args = [self._argument(o, v, type_) for (o, _), v in zip(self.arguments, values, strict=True)]
        written, old = call.instruction.type, call.instruction.result
        if old is None or written == type_:
            emit(call, row.full_name, type_, args, self._fresh(type_) if old is None else None)
            return
        emit(call, row.full_name, type_, args, self._fresh(type_))
        self._pass_back(call.instruction.value, written, old)

    def _pass_back(self, vector: Value, written: Type, name: str) -> None:
        """Give the scalar that a small result arrives as its name: the vector's bits, those above them zero."""
        call, bits = self.call, bits_of(vector.type)
        types: list[tuple[str, Type]] = [("bitcast", written)]
        if bits < bits_of(written):
            wide = IntType(bits_of(written))
            types = [("bitcast", IntType(bits)), ("zext", wide), *(types if written != wide else [])]
        place = call.index + 1
        for number, (opcode, type_) in enumerate(types):
            result = name if number == len(types) - 1 else self.coercion.function.names.fresh("bits")
            text = f"%{result} = {opcode} {vector.typed} to {type_}{call.instruction.debug_location}"
            cast = Instruction(opcode, type_, [vector], text, result=result, span=call.instruction.span)
            call.block.instructions.insert(place + number, cast)
            vector = cast.value

    def _fresh(self, type_: Type) -> str | None:
        return None if type_ == VOID else self.coercion.function.names.fresh("result")

    # Operands --------------------------------------------------------------------------------------------------

    def _arguments(self) -> list[tuple[Operand, Value]]:
        """The arguments with what they are, by the first form that they fit."""
        args = self.call.args
        forms = [expanded_form(form, len(args)) for form in self.call.placeholder.intrinsic.forms]
        check_count(self.call, forms)
        forms = [form for form in forms if len(form) == len(args)]
        for form in forms:
            if self._misfit(form) is None:
                return list(zip(form, args, strict=True))
        form = max(forms, key=lambda form: self._misfit(form) or 0)
        place = self._misfit(form) or 0
        self._complain(form[place], args[place])
        return []

    def _misfit(self, form: Sequence[Operand]) -> int | None:
        """Number of the first argument that is not what a form wants."""
        for number, (operand, value) in enumerate(zip(form, self.call.args, strict=True)):
            if not self._fits(operand.kind, value):
                return number
        return None

    def _fits(self, kind: Kind, value: Value) -> bool:
        if self._is_token(value) or kind is Kind.TENSOR:
            return self._is_token(value) and kind is Kind.TENSOR
        type_ = value.type
        if kind is Kind.POINTER:
            return isinstance(type_, PointerType)
        if kind is Kind.DIMS:
            return (isinstance(type_, VectorType) and type_.element == I32) or _passes_as_dims(type_)
        if kind is Kind.INDEX:
            return isinstance(type_, IntType)
        return is_scalar_number(type_)

    def _is_token(self, value: Value) -> bool:
        return isinstance(value, Local) and value.name in self.tokens

    def _complain(self, operand: Operand, value: Value) -> None:
        if operand.kind is Kind.TENSOR:
            makers = f"{PREFIX}typeinfo or {PREFIX}load"
            message = f"operand {operand.name} must be the token of a tensor, made by {makers}; got {value.typed}"
            definition = self.coercion.definition(value)
            if definition is None:
                message += ": a function that takes tokens must be one that can be inlined"
            notes = [] if definition is None else [Note("defined here", operand_span(definition))]
            error = self.call.error(message, value, notes)
            raise StrayTokenError(error.message, error.span, error.notes)
        wanted = {Kind.DIMS: "a vector of int", Kind.INDEX: "an int"}.get(operand.kind, operand.kind.value)
        got = "a token" if self._is_token(value) else str(value.type)
        raise self.call.error(f"operand {operand.name} must be {wanted}, got {got}", value)

    def _dims(self, operand: Operand, value: Value) -> Value:
        if operand.kind is Kind.DIMS:
            return self.coercion.dims(self.call, operand, value)
        if operand.kind is Kind.INDEX:
            return self.coercion.scalar(self.call, value, I32)
        return value

    def _argument(self, operand: Operand, value: Value, result: Type) -> tuple[Value, str]:
        if operand.kind is Kind.TENSOR and isinstance(value, Local):
            return Local(TOKEN, value.name), ""
        if operand.kind is Kind.POINTER:
            return value, pointer_attribute(self.call, value)
        if operand.kind is Kind.SCALAR and isinstance(result, VectorType):
            return self.coercion.scalar(self.call, value, result.element), ""
        return value, ""

    # Results ---------------------------------------------------------------------------------------------------

    def _result(self, values: Sequence[Value]) -> Type:
        """The flattened result's type; that of small results follows from the operands."""
        written = self.call.instruction.type
        if isinstance(written, VectorType):
            return written
        if not is_scalar_number(written):
            raise self.call.error(f"must return a vector, not {written}")
        fitting = self._fitting(values, bits_of(written))
        if len(fitting) != 1:
            raise self.call.error(self._unclear(written, fitting))
        return fitting[0]

    def _unclear(self, written: Type, fitting: Sequence[VectorType]) -> str:
        if not fitting:
            return f"the result arrives as {written}, a size that no result of these operands has"
        name = f"{PREFIX}{operation_name(self.call.placeholder.intrinsic.name)}_<element type>"
        choices = " or ".join(map(str, fitting))
        return f"the result arrives as {written}, which may be {choices}: say the element type in the name, {name}"

    def _fitting(self, values: Sequence[Value], bits: int) -> list[VectorType]:
        """Results of that size which the operation may have."""
        tensors = [self._tensor(v) for (o, _), v in zip(self.arguments, values, strict=True) if o.kind is Kind.TENSOR]
        dims = [
            _numbers(v) for (o, _), v in zip(self.arguments, values, strict=True) if o.kind in (Kind.DIMS, Kind.INDEX)
        ]
        known = [t for t in tensors if t is not None]
        numbers = [n for n in dims if n is not None]
        if len(known) < len(tensors) or len(numbers) < len(dims):
            return []
        named = self.call.placeholder.element
        fitting: dict[VectorType, None] = {}
        for element in ELEMENTS.values() if named is None else [named]:
            for type_ in self._inferred(known, numbers, element):
                if passed_bits(bits_of(type_.vector)) == bits:
                    fitting[type_.vector] = None
        return list(fitting)

    def _inferred(
        self, tensors: Sequence[TensorType], dims: Sequence[tuple[int, ...]], element: Type
    ) -> list[TensorType]:
        try:
            return self.call.placeholder.intrinsic.infer(tensors, dims, element)
        except ValueError:
            return []

    def _tensor(self, value: Value) -> TensorType | None:
        return self.tokens[value.name].type if isinstance(value, Local) else None


def _passes_as_dims(type_: Type) -> bool:
    """Whether vectors of one or two ints arrive as this type."""
    return type_ == DOUBLE or (isinstance(type_, IntType) and type_.bits in (32, 64))


def _numbers(value: Value) -> tuple[int, ...] | None:
    return (value.value,) if isinstance(value, ConstInt) else int_elements(value)
