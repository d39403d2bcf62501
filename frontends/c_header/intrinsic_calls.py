"""Calls to placeholders become calls to tensor intrinsics: first those that return tokens, then those that take them.

    %t = call i32 @tensor_typeinfo(<256 x i32> %v, double 0x1000000010, double 0x100000000, double 0.0)
    %u = call i32 @tensor_load_i8(ptr %p, double 0x4000000010, double 0x100000000, double 0.0, double 0.0)
    ->
    %t = call token @llvm.tensor.typeinfo(<256 x i32> %v, <2 x i32> <i32 16, i32 16>, <2 x i32> ..., <2 x i32> ...)
    %u = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 16, i32 64>, ...)

A tensor in a parameter that is passed by value and never written is not loaded:

    %v = load <256 x i32>, ptr %parameter
    %t = call i32 @tensor_typeinfo(<256 x i32> %v, ...)
    ->
    %t = call token @llvm.tensor.typeinfo(ptr byval(<256 x i32>) %parameter, ...)

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

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tlx.diagnostics import Note, VerifyError, counted
from tlx.frontends.c_header.calling_convention import Coercion, passed_scalar_bits
from tlx.frontends.c_header.mem2reg import debug_only
from tlx.frontends.c_header.placeholders import ELEMENTS, PREFIX, PlaceholderCall, c_name, placeholder_calls
from tlx.intrinsics import Operand, OperandKind
from tlx.intrinsics.tensor_type import TensorType, type_problem
from tlx.ir.abi import attribute_pointee
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import uses
from tlx.ir.tensors.calls import expanded_form, operand_span
from tlx.ir.types import DOUBLE, I8, I32, TOKEN, VOID, IntType, PointerType, Type, VectorType, bits_of, is_scalar_number
from tlx.ir.values import ConstInt, Global, Local, Value, int_elements


class StrayTokenError(VerifyError):
    """A token may be passed to or returned from a function: inlining may help."""


@dataclass(eq=False)
class TensorToken:
    """A token.

    Attributes:
        block: The block of its definition.
        definition: The call that returns it.
        dims: Shape, layout and padding.
        type: Its tensor type, None if the shape is not constant or the element type of a load is determined by its
            users.
        vector: Its flattened vector, if that is available as a value.
    """

    block: Block
    definition: Instruction
    dims: tuple[Value, ...]
    type: TensorType | None
    vector: Value | None

    def flattened(self, module: Module, function: Function) -> Value:
        """Its flattened vector; a tensor in memory is loaded at the definition of the token."""
        if self.vector is None and self.type is not None:
            index = next(i for i, other in enumerate(self.block.instructions) if other is self.definition)
            builder = Builder(module, function, self.block, index + 1)
            type_, token = self.type.vector, self.definition.value
            body = f"call {type_} @llvm.tensor.tovector({token.typed}){self.definition.debug_location}"
            call = builder.emit("call", type_, [Global(VOID, "llvm.tensor.tovector"), token], body, "vector")
            call.span, call.arg_attributes = self.definition.span, ("",)
            self.vector = call.value
        if self.vector is None:
            raise AssertionError(self.definition.text)
        return self.vector


def make_tokens(module: Module, function: Function) -> dict[str, TensorToken]:
    """Rewrite the calls to a function that return tokens; returns the tokens by name."""
    coercion = Coercion(module, function)
    parameters = _constant_parameters(function)
    tokens: dict[str, TensorToken] = {}
    for call in placeholder_calls(function):
        if call.placeholder.intrinsic.result == "token" and call.instruction.result is not None:
            tokens[call.instruction.result] = _make_token(call, coercion, parameters)
    return tokens


def _make_token(call: PlaceholderCall, coercion: Coercion, parameters: dict[str, Type]) -> TensorToken:
    (form,) = call.placeholder.intrinsic.forms
    check_operand_count(call, [form])
    args = list(call.args)
    dims = {o.name: coercion.dims(call, o, v) for o, v in zip(form, args, strict=True) if o.kind is OperandKind.DIMS}
    numbers = [int_elements(value) for value in dims.values()]
    _check_dims(call, form, args, list(dims.values()))
    shape = numbers[0]
    if form[0].kind is OperandKind.FLAT:
        count = None if shape is None else math.prod(shape)
        vector = coercion.flat(call, args[0], count)
        operand, attribute = _in_place(vector, coercion, parameters)
        element = vector.type.element if isinstance(vector.type, VectorType) else None
    else:
        vector, operand = None, args[0]
        element = _load_element(call, operand)
        attribute = pointer_attribute(call, operand)
    emit_intrinsic(
        call,
        call.placeholder.intrinsic.full_name,
        TOKEN,
        [(operand, attribute), *((value, "") for value in dims.values())],
    )
    known = [n for n in numbers[:3] if n is not None]
    type_ = TensorType(element, known[0], known[1], known[2]) if element is not None and len(known) == 3 else None
    in_memory = vector is None or isinstance(operand.type, PointerType)
    return TensorToken(call.block, call.instruction, tuple(dims.values())[:3], type_, None if in_memory else vector)


def check_operand_count(call: PlaceholderCall, forms: Sequence[Sequence[Operand]]) -> None:
    """Check that a form of the operation has as many operands as the call.

    Raises:
        VerifyError: None does.
    """
    if any(len(form) == len(call.args) for form in forms):
        return
    all_forms = call.placeholder.intrinsic.forms
    expected = " or ".join(f"({', '.join(o.name + ('...' if o.repeated else '') for o in f)})" for f in all_forms)
    raise call.error(f"expected operands {expected}, got {counted(len(call.args), 'operand')}")


def emit_intrinsic(
    call: PlaceholderCall, name: str, type_: Type, args: Sequence[tuple[Value, str]], result: str | None = None
) -> None:
    """Turn a placeholder call into a call to an intrinsic; arguments come with their attributes."""
    if result is not None:
        call.instruction.result = result
    call.rewrite([value for value, _ in args], type_, name)
    spelled = ", ".join(" ".join(w for w in (str(v.type), a, str(v)) if w) for v, a in args)
    head = "" if call.instruction.result is None else f"%{call.instruction.result} = "
    call.instruction.text = f"{head}call {type_} @{name}({spelled}){call.instruction.debug_location}"
    call.instruction.arg_attributes = tuple(attribute for _, attribute in args)


def pointer_attribute(call: PlaceholderCall, pointer: Value) -> str:
    """`elementtype(T)` if the name gives an element type and the pointer does not."""
    element = call.placeholder.element
    if element is None or (isinstance(pointer.type, PointerType) and pointer.type.pointee == element != I8):
        return ""
    return f"elementtype({element})"


def _load_element(call: PlaceholderCall, pointer: Value) -> Type | None:
    """The element type of a load, None if the users of the token determine it."""
    if not isinstance(pointer.type, PointerType):
        raise call.error(f"operand pointer must be a pointer, got {pointer.type}", pointer)
    if call.placeholder.element is not None:
        return call.placeholder.element
    pointee = pointer.type.pointee
    return pointee if pointee is not None and pointee != I8 and is_scalar_number(pointee) else None


def _check_dims(call: PlaceholderCall, form: Sequence[Operand], args: Sequence[Value], dims: Sequence[Value]) -> None:
    """Check that shape, layout, padding and strides are consistent."""
    names = [operand.name for operand in form if operand.kind is OperandKind.DIMS]
    ranks = [value.type.count for value in dims if isinstance(value.type, VectorType)]
    for name, rank in zip(names, ranks, strict=True):
        if rank != ranks[0]:
            blamed = next(v for o, v in zip(form, args, strict=True) if o.name == name)
            raise call.error(f"{name} has {rank} entries and {names[0]} has {ranks[0]}", blamed)
    numbers = [int_elements(value) for value in dims[:3]]
    known = [n for n in numbers if n is not None]
    problem = type_problem(known[0], known[1], known[2]) if len(known) == 3 else None
    if problem:
        raise call.error(problem)


def _constant_parameters(function: Function) -> dict[str, Type]:
    """Parameters passed by value (in memory) that the function only reads."""
    used = uses(function)
    return {
        argument.name: type_
        for argument in function.arguments
        if (type_ := attribute_pointee(argument.attributes, "byval")) is not None
        and all(use.instruction.opcode == "load" or debug_only(use.instruction) for use in used[argument.name])
    }


def _in_place(vector: Value, coercion: Coercion, parameters: dict[str, Type]) -> tuple[Value, str]:
    """A tensor as operand of `typeinfo`: its address if it is a constant parameter in memory, else its vector."""
    load = coercion.definition(vector)
    if load is None or load.opcode != "load" or load.flags:
        return vector, ""
    pointer = load.operands[0]
    if isinstance(pointer, Local) and parameters.get(pointer.name) == vector.type:
        return pointer, f"byval({vector.type})"
    return vector, ""


def make_operations(module: Module, function: Function, tokens: dict[str, TensorToken]) -> None:
    """Rewrite the calls to a function that take tokens.

    Raises:
        VerifyError: The arguments of a call do not match its operation.
    """
    coercion = Coercion(module, function)
    for call in placeholder_calls(function):
        if call.placeholder.intrinsic.result != "token":
            _IntrinsicCall(call, coercion, tokens).rewrite()


class _IntrinsicCall:
    """One call."""

    def __init__(self, call: PlaceholderCall, coercion: Coercion, tokens: dict[str, TensorToken]) -> None:
        self.call = call
        self.coercion = coercion
        self.tokens = tokens
        self.arguments = self._arguments()

    def rewrite(self) -> None:
        """Turn it into a call of the intrinsic."""
        call, row = self.call, self.call.placeholder.intrinsic
        values = [self._dims(operand, value) for operand, value in self.arguments]
        type_ = self._result(values) if row.result == "vector" else VOID
        args = [self._argument(o, v, type_) for (o, _), v in zip(self.arguments, values, strict=True)]
        written, old = call.instruction.type, call.instruction.result
        if old is None or written == type_:
            emit_intrinsic(call, row.full_name, type_, args, self._fresh(type_) if old is None else None)
            return
        if type_ == VOID:
            raise call.error(f"it returns nothing, but this call returns {written}")
        emit_intrinsic(call, row.full_name, type_, args, self._fresh(type_))
        self._pass_back(call.instruction.value, written, old)

    def _pass_back(self, vector: Value, written: Type, name: str) -> None:
        """Cast a small result to the scalar in which C returns it: the bits of the vector, zero-extended."""
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
        """The arguments with their operands, by the first form that matches."""
        args = self.call.args
        forms = [expanded_form(form, len(args)) for form in self.call.placeholder.intrinsic.forms]
        check_operand_count(self.call, forms)
        forms = [form for form in forms if len(form) == len(args)]
        for form in forms:
            if self._misfit(form) is None:
                return list(zip(form, args, strict=True))
        form = max(forms, key=lambda form: self._misfit(form) or 0)
        place = self._misfit(form) or 0
        self._report_misfit(form[place], args[place])
        return []

    def _misfit(self, form: Sequence[Operand]) -> int | None:
        """Index of the first argument that does not match a form."""
        for number, (operand, value) in enumerate(zip(form, self.call.args, strict=True)):
            if not self._fits(operand.kind, value):
                return number
        return None

    def _fits(self, kind: OperandKind, value: Value) -> bool:
        if self._is_token(value) or kind is OperandKind.TENSOR:
            return self._is_token(value) and kind is OperandKind.TENSOR
        type_ = value.type
        if kind is OperandKind.POINTER:
            return isinstance(type_, PointerType)
        if kind is OperandKind.DIMS:
            return (isinstance(type_, VectorType) and type_.element == I32) or _passes_as_dims(type_)
        if kind is OperandKind.INDEX:
            return isinstance(type_, IntType)
        return is_scalar_number(type_)

    def _is_token(self, value: Value) -> bool:
        return isinstance(value, Local) and value.name in self.tokens

    def _report_misfit(self, operand: Operand, value: Value) -> None:
        if operand.kind is OperandKind.TENSOR:
            makers = f"{PREFIX}typeinfo or {PREFIX}load"
            message = f"operand {operand.name} must be the token of a tensor, made by {makers}; got {value.typed}"
            definition = self.coercion.definition(value)
            if definition is None:
                message += ": a function that takes tokens must be one that can be inlined"
            notes = [] if definition is None else [Note("defined here", operand_span(definition))]
            error = self.call.error(message, value, notes)
            raise StrayTokenError(error.message, error.span, error.notes)
        expected = {OperandKind.DIMS: "a vector of int", OperandKind.INDEX: "an int"}.get(
            operand.kind, operand.kind.value
        )
        got = "a token" if self._is_token(value) else str(value.type)
        raise self.call.error(f"operand {operand.name} must be {expected}, got {got}", value)

    def _dims(self, operand: Operand, value: Value) -> Value:
        if operand.kind is OperandKind.DIMS:
            return self.coercion.dims(self.call, operand, value)
        if operand.kind is OperandKind.INDEX:
            return self.coercion.scalar(self.call, value, I32)
        return value

    def _argument(self, operand: Operand, value: Value, result: Type) -> tuple[Value, str]:
        if operand.kind is OperandKind.TENSOR and isinstance(value, Local):
            return Local(TOKEN, value.name), ""
        if operand.kind is OperandKind.POINTER:
            return value, pointer_attribute(self.call, value)
        if operand.kind is OperandKind.SCALAR and isinstance(result, VectorType):
            return self.coercion.scalar(self.call, value, result.element), ""
        return value, ""

    # Results ---------------------------------------------------------------------------------------------------

    def _result(self, values: Sequence[Value]) -> Type:
        """The type of the flattened result; for small results it is inferred from the operands."""
        written = self.call.instruction.type
        if isinstance(written, VectorType):
            return written
        if not is_scalar_number(written):
            raise self.call.error(f"must return a vector, not {written}")
        fitting = self._result_types(values, bits_of(written))
        if len(fitting) != 1:
            raise self.call.error(self._unclear(written, fitting))
        return fitting[0]

    def _unclear(self, written: Type, fitting: Sequence[VectorType]) -> str:
        if not fitting:
            return f"the result arrives as {written}, a size that no result of these operands has"
        name = f"{PREFIX}{c_name(self.call.placeholder.intrinsic.name)}_<element type>"
        choices = " or ".join(map(str, fitting))
        return f"the result arrives as {written}, which may be {choices}: say the element type in the name, {name}"

    def _result_types(self, values: Sequence[Value], bits: int) -> list[VectorType]:
        """The possible result types of that size."""
        tensors = [
            self._tensor(v) for (o, _), v in zip(self.arguments, values, strict=True) if o.kind is OperandKind.TENSOR
        ]
        dims = [
            _constant_numbers(v)
            for (o, _), v in zip(self.arguments, values, strict=True)
            if o.kind in (OperandKind.DIMS, OperandKind.INDEX)
        ]
        known = [t for t in tensors if t is not None]
        numbers = [n for n in dims if n is not None]
        if len(known) < len(tensors) or len(numbers) < len(dims):
            return []
        named = self.call.placeholder.element
        fitting: dict[VectorType, None] = {}
        for element in ELEMENTS.values() if named is None else [named]:
            for type_ in self._inferred(known, numbers, element):
                if passed_scalar_bits(bits_of(type_.vector)) == bits:
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
    """Whether vectors of one or two ints are passed in this type."""
    return type_ == DOUBLE or (isinstance(type_, IntType) and type_.bits in (32, 64))


def _constant_numbers(value: Value) -> tuple[int, ...] | None:
    return (value.value,) if isinstance(value, ConstInt) else int_elements(value)
