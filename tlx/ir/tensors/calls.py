"""Calls to tensor intrinsics: their spellings, operands and canonical form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tlx.diagnostics import Note, ParseError, Source, Span, VerifyError, counted, nearest, suggestion
from tlx.intrinsics import INTRINSICS, Intrinsic, Operand, OperandKind, is_tensor_name, lookup
from tlx.ir.abi import attribute_pointee
from tlx.ir.functions import Argument, Signature
from tlx.ir.instructions import Instruction
from tlx.ir.module import Declaration, Module, UnparsedText
from tlx.ir.parser.instructions import parse_instruction_text
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
    """The span of an operand of an instruction, or of the whole instruction if that is not known.

    The span of an instruction that the lowering made is in a source that consists of its text.
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
    """The operands of the form with their values."""

    def __post_init__(self) -> None:
        self.arguments = list(zip(self.form, self.instruction.args, strict=True))

    def values(self, *kinds: OperandKind) -> list[Value]:
        """The arguments of some kinds, in order."""
        return [value for operand, value in self.arguments if operand.kind in kinds]

    def named(self, name: str | None, number: int = 0) -> Value | None:
        """The argument of the operand with a name; the arguments of a repeated operand are numbered from 0."""
        values = [value for operand, value in self.arguments if operand.name == name]
        return values[number] if number < len(values) else None

    def attributes(self, value: Value) -> str:
        """The attributes of an argument."""
        for (_, argument), text in zip(self.arguments, self.instruction.arg_attributes, strict=True):
            if argument is value:
                return text
        message = f"{value} is not an argument of {self.instruction.text}"
        raise ValueError(message)

    def error(self, message: str, value: Value | None = None, notes: Sequence[Note] = ()) -> VerifyError:
        """An error at the call, or at one of its arguments."""
        text = f"{self.intrinsic.name}: {message}"
        return VerifyError(text, operand_span(self.instruction, value), list(notes))


def tensor_call(instruction: Instruction) -> TensorCall | None:
    """A tensor call with its arguments assigned to operands; None for other instructions.

    Raises:
        VerifyError: The intrinsic is unknown, or the arguments match none of its forms.
    """
    callee = instruction.callee
    if callee is None or not is_tensor_name(callee):
        return None
    intrinsic = lookup(callee)
    if intrinsic is None:
        raise _unknown(instruction, callee)
    if instruction.opcode != "call":
        message = f"{intrinsic.name}: intrinsics are called with 'call', not with '{instruction.opcode}'"
        raise VerifyError(message, operand_span(instruction))
    return TensorCall(instruction, intrinsic, _matching_form(instruction, intrinsic))


def _unknown(instruction: Instruction, callee: str) -> VerifyError:
    names = {name: row.prefix + name for row in INTRINSICS for name in (row.name, *row.aliases)}
    stem = _SUFFIXES.sub("", callee.strip('"')).removeprefix("llvm.tensor.").removeprefix("llvm.vector.")
    near = nearest(stem, names)
    message = f"unknown intrinsic @{callee}{suggestion(near and '@' + names[near])}"
    return VerifyError(message, operand_span(instruction, instruction.operands[0]))


def _matching_form(instruction: Instruction, intrinsic: Intrinsic) -> tuple[Operand, ...]:
    args = instruction.args
    form = find_form(intrinsic, tuple(value.type for value in args))
    if form is not None:
        return form
    forms = [form for form in (expanded_form(form, len(args)) for form in intrinsic.forms) if len(form) == len(args)]
    if not forms:
        expected = " or ".join(f"({_form_text(form)})" for form in intrinsic.forms)
        message = f"{intrinsic.name}: expected operands {expected}, got {counted(len(args), 'operand')}"
        raise VerifyError(message, operand_span(instruction))
    operand, value = _first_misfit(forms, args)
    message = f"{intrinsic.name}: operand {operand.name} must be {operand.kind.value}, got {value.type}"
    raise VerifyError(message, operand_span(instruction, value))


@lru_cache(maxsize=4096)
def find_form(intrinsic: Intrinsic, types: tuple[Type, ...]) -> tuple[Operand, ...] | None:
    """The first form that arguments of these types match; None if there is none."""
    for form in intrinsic.forms:
        expanded = expanded_form(form, len(types))
        if len(expanded) == len(types) and all(
            fits_kind(operand.kind, type_) for operand, type_ in zip(expanded, types, strict=True)
        ):
            return expanded
    return None


def expanded_form(form: tuple[Operand, ...], count: int) -> tuple[Operand, ...]:
    """A form with its repeated operand expanded to the number of arguments, at least once."""
    times = max(1, count - len(form) + 1)
    return tuple(operand for operand in form for _ in range(times if operand.repeated else 1))


def _form_text(form: Sequence[Operand]) -> str:
    return ", ".join(operand.name + ("..." if operand.repeated else "") for operand in form)


def _first_misfit(forms: Sequence[Sequence[Operand]], args: Sequence[Value]) -> tuple[Operand, Value]:
    """The first mismatch with the form of which most leading operands match."""

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
    """The message for an invalid element type."""
    known = ", ".join(map(str, ELEMENT_TYPES))
    return f"tensors cannot have elements of type {element}: use {known}"


def innermost_element(type_: Type | None) -> Type | None:
    """The element type of nested vectors and arrays."""
    while isinstance(type_, (VectorType, ArrayType)):
        type_ = type_.element
    return type_


def attribute_type(call: TensorCall, value: Value) -> Type | None:
    """The type in an argument's attribute `byval(T)` or `elementtype(T)`."""
    attributes = call.attributes(value)
    try:
        return attribute_pointee(attributes, "byval", "elementtype")
    except ParseError as broken:
        raise call.error(f"expected a type in {attributes}", value) from broken


def pointer_element(call: TensorCall, pointer: Value) -> Type | None:
    """Element type of a pointer: from an attribute, from its type unless that is `i8*`, or from the callee's name.

    LLVM drops pointee types when it reads an old file, but keeps names: `@llvm.tensor.load.p0f32.v2i32(ptr ...)`.

    Raises:
        VerifyError: It is not an element type of tensors.
    """
    element = innermost_element(attribute_type(call, pointer))
    if element is None and isinstance(pointer.type, PointerType) and pointer.type.pointee not in (None, I8):
        element = innermost_element(pointer.type.pointee)
    if element is not None and element not in ELEMENT_TYPES:
        raise call.error(element_type_error(element), pointer)
    return element or suffix_element(call, pointer)


def suffix_element(call: TensorCall, pointer: Value) -> Type | None:
    """Element type of an opaque pointer, from the suffix of the callee's name."""
    match = _POINTER_SUFFIX.search(call.instruction.callee or "")
    is_opaque = isinstance(pointer.type, PointerType) and pointer.type.pointee is None
    return _BY_SUFFIX[match.group(1)] if match and is_opaque else None


_METADATA: Final = re.compile(r",\s*![-a-zA-Z$._\\].*", re.DOTALL)
_TAILS: Final = frozenset({"tail", "notail", "musttail"})
_BYVAL: Final = re.compile(r"\bbyval\b")
_NAME: Final = re.compile(r"[^-a-zA-Z$._0-9]+")


def canonicalise(module: Module) -> None:
    """Give every tensor call of the parsed functions its canonical name and operand order, and declare it.

    Calls and declarations that are canonical stay as they are, byte for byte.

    Raises:
        VerifyError: A call's intrinsic is unknown, or its arguments match none of the forms.
    """
    needed: dict[str, Declaration] = {}
    for function in module.functions:
        for block in function.blocks:
            for index, instruction in enumerate(block.instructions):
                call = tensor_call(instruction)
                if call is None:
                    continue
                new = block.instructions[index] = _canonical_call(call)
                if new.callee is not None and new.callee not in needed:
                    needed[new.callee] = overload_declaration(
                        call.intrinsic, new.type, [value.type for value in new.args]
                    )
    _replace_declarations(module, needed)


def canonical_name(intrinsic: Intrinsic, result: Type, operands: Sequence[Type]) -> str:
    """The mangled name of one overload.

    It has suffixes for the result, if that is a vector, for the number of repeated tokens, and for all other operands
    whose type does not follow from the one before (as layout and padding do).

    Args:
        intrinsic: The row of the table.
        result: Type of the result.
        operands: Types of the operands, in canonical order.
    """
    return _canonical_name(intrinsic, result, tuple(operands))


@lru_cache(maxsize=4096)
def _canonical_name(intrinsic: Intrinsic, result: Type, operands: tuple[Type, ...]) -> str:
    form = find_form(intrinsic, operands)
    if form is None:
        message = f"{intrinsic.full_name} takes no operands of types {', '.join(map(str, operands))}"
        raise ValueError(message)
    suffixes = [_suffix(result)] if isinstance(result, VectorType) else []
    if any(operand.repeated for operand in form):
        suffixes.append(str(sum(type_ == TOKEN for type_ in operands)))
    mangled = (_suffix(t) for o, t in zip(form, operands, strict=True) if _is_mangled(o))
    return ".".join([intrinsic.full_name, *suffixes, *mangled])


def overload_declaration(intrinsic: Intrinsic, result: Type, operands: Sequence[Type]) -> Declaration:
    """A new declaration of one overload."""
    name = canonical_name(intrinsic, result, operands)
    reads = intrinsic.effects == "typeinfo" and isinstance(operands[0], PointerType)
    attributes = intrinsic.attributes(reads=reads)
    arguments = [Argument(type_, "", str(index)) for index, type_ in enumerate(operands)]
    text = f"\n\ndeclare {result} @{name}({', '.join(map(str, operands))}) {attributes}"
    return Declaration(text, Signature(name, result, arguments, False, "", attributes))


# Calls -------------------------------------------------------------------------------------------------------------


def _canonical_call(call: TensorCall) -> Instruction:
    """The call with its canonical name and operand order; the same object if it is canonical already."""
    old = call.instruction
    order = _canonical_order(call)
    types = [call.arguments[index][1].type for index in order]
    name = canonical_name(call.intrinsic, old.type, types)
    metadata = _METADATA.search(old.trailer)
    trailer = metadata.group() if metadata else ""
    if old.callee == name and trailer == old.trailer and order == sorted(order) and _has_pointees(call):
        return old
    words = [[str(old.args[index].type), _argument_attributes(call, index), str(old.args[index])] for index in order]
    arguments = ", ".join(" ".join(filter(None, argument)) for argument in words)
    text = f"{_call_prefix(old)}@{name}({arguments}){trailer}"
    new = parse_instruction_text(text)
    new.lead, new.span = old.lead, old.span
    return new


def _call_prefix(call: Instruction) -> str:
    """The text before the callee: `%r = tail call token `, without a function type, which the declaration has."""
    result = [f"%{call.result} ="] if call.result is not None else []
    tails = [word for word in call.flags if word in _TAILS - {"musttail"}]
    fast_math = [word for word in call.flags if word not in _TAILS]
    return " ".join([*result, *tails, "call", *fast_math, str(call.type), ""])


def _argument_attributes(call: TensorCall, index: int) -> str:
    """The attributes of an argument, with the pointee type if that is only in its type or the callee's old name.

    A pointer to a flattened tensor gets the vector's type, which `byval` lacks up to LLVM 8. The opaque pointer of a
    load or store whose name has the suffix `p0f32` gets an `elementtype`.
    """
    operand, value = call.arguments[index]
    attributes = call.instruction.arg_attributes[index]
    if not isinstance(value.type, PointerType) or attribute_type(call, value) is not None:
        return attributes
    pointee = value.type.pointee if operand.kind is OperandKind.FLAT else suffix_element(call, value)
    if pointee is None:
        return attributes
    if _BYVAL.search(attributes):
        return _BYVAL.sub(f"byval({pointee})", attributes)
    return f"{attributes} elementtype({pointee})".strip()


def _has_pointees(call: TensorCall) -> bool:
    attributes = call.instruction.arg_attributes
    return all(_argument_attributes(call, index) == text for index, text in enumerate(attributes))


def _canonical_order(call: TensorCall) -> list[int]:
    """Arguments of the call, by number, in the canonical form's order."""
    if call.form == call.intrinsic.operands:
        return list(range(len(call.form)))
    canonical = [operand.name for operand in call.intrinsic.operands]
    names = [operand.name for operand in call.form]
    if sorted(canonical) != sorted(names):
        return list(range(len(names)))
    return [names.index(name) for name in canonical]


# Names -------------------------------------------------------------------------------------------------------------


def _is_mangled(operand: Operand) -> bool:
    return operand.kind not in (OperandKind.TENSOR, OperandKind.INDEX) and not operand.like_previous


def _suffix(type_: Type) -> str:
    """LLVM's suffix; for types without one, the spelling without punctuation."""
    try:
        return mangle(type_)
    except ValueError:
        return _NAME.sub("_", f"p_{type_}").strip("_")


# Declarations ------------------------------------------------------------------------------------------------------


def _replace_declarations(module: Module, needed: dict[str, Declaration]) -> None:
    """Remove tensor declarations that are wrong or not needed, and add those that are missing."""
    text = "".join(item.text for item in module.items if isinstance(item, UnparsedText))
    mentioned = set(re.findall(r"@(llvm\.(?:tensor|vector\.totensor)[-a-zA-Z$._0-9]*)", text))
    obsolete: list[Declaration] = []
    for item in module.items:
        if not isinstance(item, Declaration) or not is_tensor_name(item.name):
            continue
        new = needed.get(item.name)
        if new is not None and _is_same(module, item, new):
            del needed[item.name]
        elif new is not None or item.name not in mentioned:
            obsolete.append(item)
    module.remove(*obsolete)
    for new in needed.values():
        module.append(new)
        module.global_names.taken.add(new.name)


def _is_same(module: Module, old: Declaration, new: Declaration) -> bool:
    signature = old.signature
    words = _words(module.attribute_text(signature))
    words -= _INFERRED if "willreturn" in words else _INFERRED - {"mustprogress"}
    return signature.type == new.signature.type and words == _words(new.signature.attributes)


def _words(attributes: str) -> set[str]:
    """Attributes, with `memory(...)` spelled as up to LLVM 15."""
    for newer, older in _MEMORY.items():
        attributes = attributes.replace(newer, older)
    return set(attributes.split())


_INFERRED: Final = {"mustprogress", "nofree", "nosync"}
"""Attributes that LLVM's optimiser adds to declarations; `willreturn` implies `mustprogress`."""


_MEMORY: Final = {
    "memory(none)": "readnone",
    "memory(argmem: read)": "argmemonly readonly",
    "memory(argmem: write)": "argmemonly writeonly",
}
