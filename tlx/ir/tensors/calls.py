"""Tensor calls as the table sees them: the intrinsic, its form, and which argument is which operand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tlx.diagnostics import Note, ParseError, Source, Span, VerifyError, nearest
from tlx.intrinsics import INTRINSICS, Intrinsic, Operand, OperandKind, is_tensor_name, lookup
from tlx.ir.abi import attribute_pointee
from tlx.ir.instructions import Instruction
from tlx.ir.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    TOKEN,
    ArrayType,
    PointerType,
    Type,
    VectorType,
    is_scalar_number,
    mangle,
)
from tlx.ir.values import Value

ELEMENT_TYPES: Final = (I1, I8, I16, I32, I64, HALF, BFLOAT, FLOAT, DOUBLE)
_SUFFIXES: Final = re.compile(r"(?:\.(?:(?:nx)?v|p|i|f|bf)\d\w*)+$")
_POINTER_SUFFIX: Final = re.compile(r"\.p\d+(i1|i16|i32|i64|f16|bf16|f32|f64)(?=\.|$)")
_BY_SUFFIX: Final = {mangle(type_): type_ for type_ in ELEMENT_TYPES}


def is_tensor_call(instruction: Instruction) -> bool:
    """Whether an instruction calls a tensor intrinsic, known or not."""
    callee = instruction.callee
    return callee is not None and is_tensor_name(callee)


def operand_span(instruction: Instruction, value: Value | None = None) -> Span:
    """Where an operand of an instruction stands; the whole instruction where that is not known.

    What lowering made stands in no file: its span is in a source of its own text.
    """
    span = instruction.span or Source("<generated>", instruction.text).span(0, len(instruction.text))
    written = span.source.text[span.start : span.end]
    if value is None or instruction.spans is None or not instruction.text.endswith(written):
        return span
    shift = span.start - (len(instruction.text) - len(written))
    for operand, (start, end) in zip(instruction.operands, instruction.spans, strict=False):
        if operand is value and start + shift >= span.start:
            return Span(span.source, start + shift, end + shift)
    return span


@dataclass(eq=False)
class TensorCall:
    """A call with its arguments in the order of one of the intrinsic's forms."""

    instruction: Instruction
    intrinsic: Intrinsic
    form: tuple[Operand, ...]
    arguments: list[tuple[Operand, Value]] = field(init=False, repr=False)
    """Operands of the form and the values given for them."""

    def __post_init__(self) -> None:
        self.arguments = list(zip(self.form, self.instruction.args, strict=True))

    def values(self, *kinds: OperandKind) -> list[Value]:
        """The arguments of some kinds."""
        return [value for operand, value in self.arguments if operand.kind in kinds]

    def named(self, name: str | None, number: int = 0) -> Value | None:
        """The argument of a name; a repeated operand's arguments are numbered from 0."""
        found = [value for operand, value in self.arguments if operand.name == name]
        return found[number] if number < len(found) else None

    def attributes(self, value: Value) -> str:
        """The attributes that stand before an argument."""
        for (_, argument), text in zip(self.arguments, self.instruction.arg_attributes, strict=True):
            if argument is value:
                return text
        msg = f"{value} is no argument of {self.instruction.text}"
        raise ValueError(msg)

    def error(self, message: str, value: Value | None = None, notes: Sequence[Note] = ()) -> VerifyError:
        """An error at the call, or at one of its arguments."""
        text = f"{self.intrinsic.name}: {message}"
        return VerifyError(text, operand_span(self.instruction, value), list(notes))


def tensor_call(instruction: Instruction) -> TensorCall | None:
    """A tensor call with its arguments sorted out; None for other instructions.

    Raises:
        VerifyError: No such intrinsic, or arguments that are none of its forms.
    """
    callee = instruction.callee
    if callee is None or not is_tensor_name(callee):
        return None
    intrinsic = lookup(callee)
    if intrinsic is None:
        raise _unknown(instruction, callee)
    if instruction.opcode != "call":
        message = f"{intrinsic.name}: an intrinsic takes a call, not {instruction.opcode}"
        raise VerifyError(message, operand_span(instruction))
    return TensorCall(instruction, intrinsic, _matching_form(instruction, intrinsic))


def _unknown(instruction: Instruction, callee: str) -> VerifyError:
    names = {name: row.prefix + name for row in INTRINSICS for name in (row.name, *row.aliases)}
    stem = _SUFFIXES.sub("", callee.strip('"')).removeprefix("llvm.tensor.").removeprefix("llvm.vector.")
    message = f"unknown intrinsic @{callee}"
    near = nearest(stem, names)
    if near:
        message += f"; did you mean @{names[near]}?"
    return VerifyError(message, operand_span(instruction, instruction.operands[0]))


def _matching_form(instruction: Instruction, intrinsic: Intrinsic) -> tuple[Operand, ...]:
    args = instruction.args
    found = find_form(intrinsic, tuple(value.type for value in args))
    if found is not None:
        return found
    forms = [form for form in (expanded_form(form, len(args)) for form in intrinsic.forms) if len(form) == len(args)]
    if not forms:
        expected = " or ".join(f"({_form_text(form)})" for form in intrinsic.forms)
        message = f"{intrinsic.name}: expected operands {expected}, got {len(args)} operands"
        raise VerifyError(message, operand_span(instruction))
    operand, value = _first_misfit(forms, args)
    message = f"{intrinsic.name}: operand {operand.name} must be {operand.kind.value}, got {value.type}"
    raise VerifyError(message, operand_span(instruction, value))


@lru_cache(maxsize=4096)
def find_form(intrinsic: Intrinsic, types: tuple[Type, ...]) -> tuple[Operand, ...] | None:
    """The form that arguments of these types are of (the first that has the right kinds), None if they are of none."""
    for form in intrinsic.forms:
        expanded = expanded_form(form, len(types))
        if len(expanded) == len(types) and all(
            fits_kind(operand.kind, type_) for operand, type_ in zip(expanded, types, strict=True)
        ):
            return expanded
    return None


def expanded_form(form: tuple[Operand, ...], count: int) -> tuple[Operand, ...]:
    """A form with its repeated operand as often as the number of arguments asks for, but once at least."""
    times = max(1, count - len(form) + 1)
    return tuple(operand for operand in form for _ in range(times if operand.repeated else 1))


def _form_text(form: Sequence[Operand]) -> str:
    return ", ".join(operand.name + ("..." if operand.repeated else "") for operand in form)


def _first_misfit(forms: Sequence[Sequence[Operand]], args: Sequence[Value]) -> tuple[Operand, Value]:
    """The argument that fits worst: the first misfit of the form that agrees with the arguments longest."""

    def misfit(form: Sequence[Operand]) -> int:
        pairs = enumerate(zip(form, args, strict=True))
        return next(i for i, (operand, value) in pairs if not fits_kind(operand.kind, value.type))

    form = max(forms, key=misfit)
    return form[misfit(form)], args[misfit(form)]


def fits_kind(kind: OperandKind, type_: Type) -> bool:
    """Whether an operand of a kind may have a type."""
    if kind is OperandKind.TENSOR:
        return type_ == TOKEN
    if kind is OperandKind.POINTER:
        return isinstance(type_, PointerType)
    if kind is OperandKind.FLAT:
        return isinstance(type_, (VectorType, PointerType))
    if kind is OperandKind.DIMS:
        return isinstance(type_, VectorType) and type_.element == I32
    if kind is OperandKind.INDEX:
        return type_ == I32
    return is_scalar_number(type_)


# Element types ---


def element_type_error(element: Type) -> str:
    """What to say of a type that no tensor's elements have."""
    known = ", ".join(map(str, ELEMENT_TYPES))
    return f"{element} is no element type of tensors: these are {known}"


def innermost_element(type_: Type | None) -> Type | None:
    """The element type of nested vectors and arrays."""
    while isinstance(type_, (VectorType, ArrayType)):
        type_ = type_.element
    return type_


def attribute_type(call: TensorCall, value: Value) -> Type | None:
    """The type in `byval(T)` or `elementtype(T)` in front of an argument."""
    attributes = call.attributes(value)
    try:
        return attribute_pointee(attributes, "byval", "elementtype")
    except ParseError as broken:
        raise call.error(f"expected a type in {attributes}", value) from broken


def pointer_element(call: TensorCall, pointer: Value) -> Type | None:
    """Element type that a pointer gives away: by attribute, by its type where that is not `i8*`, or by the call's name.

    LLVM drops pointee types when it reads an old file, but keeps names: `@llvm.tensor.load.p0f32.v2i32(ptr ...)`.

    Raises:
        VerifyError: No tensor has elements of that type.
    """
    element = innermost_element(attribute_type(call, pointer))
    if element is None and isinstance(pointer.type, PointerType) and pointer.type.pointee not in (None, I8):
        element = innermost_element(pointer.type.pointee)
    if element is not None and element not in ELEMENT_TYPES:
        raise call.error(element_type_error(element), pointer)
    return element or suffix_element(call, pointer)


def suffix_element(call: TensorCall, pointer: Value) -> Type | None:
    """Element type that the call's name tells of an opaque pointer."""
    found = _POINTER_SUFFIX.search(call.instruction.callee or "")
    is_opaque = isinstance(pointer.type, PointerType) and pointer.type.pointee is None
    return _BY_SUFFIX[found.group(1)] if found and is_opaque else None
