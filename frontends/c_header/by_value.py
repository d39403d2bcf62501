"""Tensors and shapes passed in memory become values, and so do results.

    %r = call i32 (...) @tensor_typeinfo(ptr byval(<16 x float>) align 64 %slot, ...)
    ->
    %v = load <16 x float>, ptr %slot, align 64
    %r = call i32 @tensor_typeinfo(<16 x float> %v, ...)

    call void @tensor_matmul(ptr sret(<16 x float>) align 64 %slot, i32 %a, i32 %b)
    ->
    %v = call <16 x float> @tensor_matmul(i32 %a, i32 %b)
    store <16 x float> %v, ptr %slot, align 64

The slot dies or is used again before the token is, so the value is the one at the call. Where a convention passes plain
pointers (AArch64), the slot is a variable of a vector type.
"""

from __future__ import annotations

import re
from typing import Final

from tlx.frontends.c_header.calls import PlaceholderCall, placeholder_calls
from tlx.intrinsics import Kind
from tlx.ir.abi import type_in
from tlx.ir.builder import Builder
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.rewriter import definitions
from tlx.ir.types import VOID, PointerType, Type, VectorType, bytes_of
from tlx.ir.values import Local, Value

_ALIGN: Final = re.compile(r"\balign (\d+)")


def pass_by_value(module: Module, function: Function) -> None:
    """Rewrite the placeholder calls of a function so that they take and return values."""
    known = definitions(function)
    for call in placeholder_calls(function):
        result = _indirect_result(call)
        skipped = 0 if result is None else 1
        args = [_value(module, function, call, known, number) for number in range(skipped, len(call.args))]
        if result is None:
            call.rewrite(args)
        else:
            _return_value(module, function, call, args, result)


def _indirect_result(call: PlaceholderCall) -> Type | None:
    attributes = call.instruction.arg_attributes
    return type_in(attributes[0], "sret") if attributes and call.instruction.type == VOID else None


def _return_value(module: Module, function: Function, call: PlaceholderCall, args: list[Value], type_: Type) -> None:
    pointer, attributes = call.args[0], call.instruction.arg_attributes[0]
    call.instruction.result = function.names.fresh("result")
    call.rewrite(args, type_)
    builder = Builder(module, function, call.block, call.index + 1)
    builder.store(call.instruction.value, pointer, _alignment(attributes, type_))


def _value(
    module: Module, function: Function, call: PlaceholderCall, known: dict[str, Instruction], number: int
) -> Value:
    """An argument, loaded where it is passed in memory."""
    value, attributes = call.args[number], call.instruction.arg_attributes[number]
    if not isinstance(value.type, PointerType):
        return value
    type_ = type_in(attributes, "byval")
    if type_ is None and not _wants_pointer(call, number):
        type_ = _slot_type(known, value)
    if type_ is None:
        return value
    builder = Builder(module, function, call.block, call.index)
    return builder.load(type_, value, _alignment(attributes, type_), "passed")


def _wants_pointer(call: PlaceholderCall, number: int) -> bool:
    forms = call.placeholder.intrinsic.forms
    return any(number < len(form) and form[number].kind is Kind.POINTER for form in forms)


def _slot_type(known: dict[str, Instruction], pointer: Value) -> Type | None:
    """The vector type of the variable that a pointer is the address of."""
    definition = known.get(pointer.name) if isinstance(pointer, Local) else None
    if definition is None or definition.opcode != "alloca":
        return None
    return definition.source_type if isinstance(definition.source_type, VectorType) else None


def _alignment(attributes: str, type_: Type) -> int:
    """What the attributes say, else that of an element."""
    found = _ALIGN.search(attributes)
    if found is not None:
        return int(found.group(1))
    return bytes_of(type_.element) if isinstance(type_, VectorType) else 1
