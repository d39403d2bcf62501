"""Calls that make tokens, and the tokens they make.

    %t = call i32 @tensor_typeinfo(<256 x i32> %v, double 0x1000000010, double 0x100000000, double 0.0)
    %u = call i32 @tensor_load_i8(ptr %p, double 0x4000000010, double 0x100000000, double 0.0, double 0.0)
    ->
    %t = call token @llvm.tensor.typeinfo(<256 x i32> %v, <2 x i32> <i32 16, i32 16>, <2 x i32> ..., <2 x i32> ...)
    %u = call token @llvm.tensor.load(ptr elementtype(i8) %p, <2 x i32> <i32 16, i32 64>, ...)

A tensor that is a parameter passed by value, and that the function never writes, is described where it lies:

    %v = load <256 x i32>, ptr %parameter
    %t = call i32 @tensor_typeinfo(<256 x i32> %v, ...)
    ->
    %t = call token @llvm.tensor.typeinfo(ptr byval(<256 x i32>) %parameter, ...)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tlx.diagnostics import VerifyError
from tlx.frontends.c_header.calls import PlaceholderCall, placeholder_calls
from tlx.frontends.c_header.coerce import Coercion
from tlx.frontends.c_header.promote import debug_only
from tlx.intrinsics import Kind, Operand
from tlx.ir.abi import type_in
from tlx.ir.builder import Builder
from tlx.ir.module import Block, Function, Instruction, Module
from tlx.ir.rewriter import uses
from tlx.ir.types import I8, TOKEN, VOID, PointerType, Type, VectorType, is_scalar_number
from tlx.ir.values import Global, Local, Value, int_elements
from tlx.types import TensorType, type_problem


class StrayTokenError(VerifyError):
    """A token may have gone through a function's parameter or result: inlining may help."""


@dataclass(eq=False)
class Token:
    """A token.

    Attributes:
        block: Where it is made.
        maker: The call that makes it.
        dims: Shape, layout and padding.
        type: What it says, as far as that is known here: None where the shape is not constant, or where the element
            type of a load is left to its users.
        vector: Its flattened vector, where that is at hand.
    """

    block: Block
    maker: Instruction
    dims: tuple[Value, ...]
    type: TensorType | None
    vector: Value | None

    def flattened(self, module: Module, function: Function) -> Value:
        """Its flattened vector; what is in memory is read where the token is made."""
        if self.vector is None and self.type is not None:
            index = next(i for i, other in enumerate(self.block.instructions) if other is self.maker)
            builder = Builder(module, function, self.block, index + 1)
            type_, token = self.type.vector, self.maker.value
            body = f"call {type_} @llvm.tensor.tovector({token.typed}){self.maker.debug_location}"
            call = builder.emit("call", type_, [Global(VOID, "llvm.tensor.tovector"), token], body, "vector")
            call.span, call.arg_attributes = self.maker.span, ("",)
            self.vector = call.value
        if self.vector is None:
            raise AssertionError(self.maker.text)
        return self.vector


def make_tokens(module: Module, function: Function) -> dict[str, Token]:
    """Rewrite the calls of a function that make tokens; gives the tokens by name."""
    coercion = Coercion(module, function)
    parameters = _constant_parameters(function)
    tokens: dict[str, Token] = {}
    for call in placeholder_calls(function):
        if call.placeholder.intrinsic.result == "token" and call.instruction.result is not None:
            tokens[call.instruction.result] = _make(call, coercion, parameters)
    return tokens


def _make(call: PlaceholderCall, coercion: Coercion, parameters: dict[str, Type]) -> Token:
    (form,) = call.placeholder.intrinsic.forms
    check_count(call, [form])
    args = list(call.args)
    dims = {o.name: coercion.dims(call, o, v) for o, v in zip(form, args, strict=True) if o.kind is Kind.DIMS}
    numbers = [int_elements(value) for value in dims.values()]
    _check_dims(call, form, args, list(dims.values()))
    shape = numbers[0]
    if form[0].kind is Kind.FLAT:
        count = None if shape is None else math.prod(shape)
        vector = coercion.flat(call, args[0], count)
        operand, attribute = _in_place(vector, coercion, parameters)
        element = vector.type.element if isinstance(vector.type, VectorType) else None
    else:
        vector, operand = None, args[0]
        element = _pointee(call, operand)
        attribute = pointer_attribute(call, operand)
    emit(
        call,
        call.placeholder.intrinsic.full_name,
        TOKEN,
        [(operand, attribute), *((value, "") for value in dims.values())],
    )
    known = [n for n in numbers[:3] if n is not None]
    type_ = TensorType(element, known[0], known[1], known[2]) if element is not None and len(known) == 3 else None
    in_memory = vector is None or isinstance(operand.type, PointerType)
    return Token(call.block, call.instruction, tuple(dims.values())[:3], type_, None if in_memory else vector)


def check_count(call: PlaceholderCall, forms: Sequence[Sequence[Operand]]) -> None:
    """Whether any form takes as many operands as the call has.

    Raises:
        VerifyError: None does.
    """
    if any(len(form) == len(call.args) for form in forms):
        return
    all_forms = call.placeholder.intrinsic.forms
    expected = " or ".join(f"({', '.join(o.name + ('...' if o.repeated else '') for o in f)})" for f in all_forms)
    raise call.error(f"expected operands {expected}, got {len(call.args)} operands")


def emit(
    call: PlaceholderCall, name: str, type_: Type, args: Sequence[tuple[Value, str]], result: str | None = None
) -> None:
    """Make a placeholder call a call of an intrinsic, its arguments with the attributes given."""
    if result is not None:
        call.instruction.result = result
    call.rewrite([value for value, _ in args], type_, name)
    spelled = ", ".join(" ".join(w for w in (str(v.type), a, str(v)) if w) for v, a in args)
    head = "" if call.instruction.result is None else f"%{call.instruction.result} = "
    call.instruction.text = f"{head}call {type_} @{name}({spelled}){call.instruction.debug_location}"
    call.instruction.arg_attributes = tuple(attribute for _, attribute in args)


def pointer_attribute(call: PlaceholderCall, pointer: Value) -> str:
    """`elementtype(T)` where the name gives an element type that the pointer does not."""
    element = call.placeholder.element
    if element is None or (isinstance(pointer.type, PointerType) and pointer.type.pointee == element != I8):
        return ""
    return f"elementtype({element})"


def _pointee(call: PlaceholderCall, pointer: Value) -> Type | None:
    """The element type of a load, None if it is left to the token's users."""
    if not isinstance(pointer.type, PointerType):
        raise call.error(f"operand pointer must be a pointer, got {pointer.type}", pointer)
    if call.placeholder.element is not None:
        return call.placeholder.element
    pointee = pointer.type.pointee
    return pointee if pointee is not None and pointee != I8 and is_scalar_number(pointee) else None


def _check_dims(call: PlaceholderCall, form: Sequence[Operand], args: Sequence[Value], dims: Sequence[Value]) -> None:
    """Shape, layout, padding and strides go together."""
    names = [operand.name for operand in form if operand.kind is Kind.DIMS]
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
        if (type_ := type_in(argument.attributes, "byval")) is not None
        and all(use.instruction.opcode == "load" or debug_only(use.instruction) for use in used[argument.name])
    }


def _in_place(vector: Value, coercion: Coercion, parameters: dict[str, Type]) -> tuple[Value, str]:
    """A tensor as operand of `typeinfo`: where it lies, if that is a parameter that nobody changes."""
    load = coercion.definition(vector)
    if load is None or load.opcode != "load" or load.flags:
        return vector, ""
    pointer = load.operands[0]
    if isinstance(pointer, Local) and parameters.get(pointer.name) == vector.type:
        return pointer, f"byval({vector.type})"
    return vector, ""
