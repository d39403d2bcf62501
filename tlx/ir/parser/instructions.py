"""Parser of instructions: a table from opcode to a small function that reads its operands.

Alignment and metadata attachments, which follow the operands of any instruction, are kept as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import Source, Span
from tlx.ir.instructions import (
    BINARY_OPCODES,
    CALL_OPCODES,
    CAST_OPCODES,
    INSTRUCTION_FLAGS,
    OPCODES,
    TAIL_MARKERS,
    Instruction,
)
from tlx.ir.parser.operands import TypeParser, ValueParser, tokenize
from tlx.ir.types import (
    I1,
    LABEL,
    METADATA,
    TOKEN,
    VOID,
    ArrayType,
    FunctionType,
    NamedType,
    PointerType,
    SimpleType,
    StructType,
    Type,
    VectorType,
)
from tlx.ir.values import Global, Value

UNKNOWN_TYPE: Final = SimpleType("?")
"""The type of a result that the text does not spell."""
NamedTypes = dict[str, Type]
"""Bodies of the module's `%name = type ...`."""


@dataclass(slots=True)
class ParsedInstruction:
    """What an opcode's parser reads after the opcode."""

    type: Type = VOID
    operands: list[Value] = field(default_factory=list[Value])
    source_type: Type | None = None
    predicate: str = ""
    indices: tuple[int, ...] = ()
    arg_attributes: tuple[str, ...] = ()
    align: int | None = None
    trailer_at: int | None = None


OpcodeParser = Callable[[ValueParser, ParsedInstruction, str, NamedTypes], None]
"""Parses the text after an opcode: (cursor, what is read, opcode, named types)."""


def read_operands(c: ValueParser, p: ParsedInstruction, count: int) -> None:
    """Read operands with their types, separated by commas."""
    for index in range(count):
        if index:
            c.expect(",")
        p.operands.append(c.operand())


def _binary(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.type = c.type()
    p.operands.append(c.operand(p.type))
    c.expect(",")
    p.operands.append(c.operand(p.type))


def _unary(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.operands.append(c.operand())
    p.type = p.operands[0].type


def _cast(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.operands.append(c.operand())
    c.expect("to")
    p.type = c.type()


def _compare(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.predicate = c.next().text
    type_ = c.type()
    p.operands.append(c.operand(type_))
    c.expect(",")
    p.operands.append(c.operand(type_))
    p.type = VectorType(type_.count, I1, type_.scalable) if isinstance(type_, VectorType) else I1


def _select(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 3)
    p.type = p.operands[1].type


def _extract_element(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 2)
    vector = p.operands[0].type
    p.type = vector.element if isinstance(vector, VectorType) else UNKNOWN_TYPE


def _insert_element(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 3)
    p.type = p.operands[0].type


def _shuffle(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 3)
    source, mask = p.operands[0].type, p.operands[2].type
    p.type = UNKNOWN_TYPE
    if isinstance(source, VectorType) and isinstance(mask, VectorType):
        p.type = VectorType(mask.count, source.element, mask.scalable)


def _resolve(type_: Type, types: NamedTypes) -> Type:
    return types.get(type_.name, UNKNOWN_TYPE) if isinstance(type_, NamedType) else type_


def _element_at(type_: Type, index: int | None, types: NamedTypes) -> Type:
    type_ = _resolve(type_, types)
    if isinstance(type_, (ArrayType, VectorType)):
        return type_.element
    if isinstance(type_, StructType) and index is not None and index < len(type_.elements):
        return type_.elements[index]
    return UNKNOWN_TYPE


def _indices(c: ValueParser, p: ParsedInstruction) -> None:
    numbers: list[int] = []
    while c.at(",") and c.tokens[c.index + 1].kind == "number":
        c.next()
        numbers.append(c.integer())
    p.indices = tuple(numbers)


def _extract_value(c: ValueParser, p: ParsedInstruction, _opcode: str, types: NamedTypes) -> None:
    read_operands(c, p, 1)
    _indices(c, p)
    p.type = p.operands[0].type
    for index in p.indices:
        p.type = _element_at(p.type, index, types)


def _insert_value(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 2)
    _indices(c, p)
    p.type = p.operands[0].type


def _alloca(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.source_type = c.type()
    if c.at(",") and not c.at("align", 1) and not c.at("addrspace", 1) and c.tokens[c.index + 1].kind != "meta":
        c.next()
        p.operands.append(c.operand())
    p.trailer_at = c.previous_end
    space = 0
    while c.at(",") and (c.at("align", 1) or c.at("addrspace", 1)):
        c.next()
        if c.accept("align"):
            p.align = c.integer()
        else:
            space = c.addrspace()
    p.type = PointerType(None, space)


def _load(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.type = c.type()
    c.expect(",")
    read_operands(c, p, 1)


def _store(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 2)


def _gep(c: ValueParser, p: ParsedInstruction, _opcode: str, types: NamedTypes) -> None:
    while c.token.text in ("inbounds", "nusw", "nuw") or c.at("inrange"):
        if c.next().text == "inrange" and c.at("("):
            c.skip_parens()
    p.source_type = c.type()
    c.expect(",")
    p.operands.append(c.operand())
    while c.at(",") and c.tokens[c.index + 1].kind != "meta":
        c.next()
        c.accept("inrange")
        p.operands.append(c.operand())
    base = p.operands[0].type
    pointer = base.element if isinstance(base, VectorType) else base
    p.type = _gep_pointer(p, pointer, types)
    for operand in p.operands:
        if isinstance(operand.type, VectorType):
            p.type = VectorType(operand.type.count, p.type, operand.type.scalable)
            break


def _gep_pointer(p: ParsedInstruction, pointer: Type, types: NamedTypes) -> Type:
    if not isinstance(pointer, PointerType) or pointer.pointee is None:
        return pointer
    element = p.source_type or UNKNOWN_TYPE
    for index in p.operands[2:]:
        element = _element_at(element, getattr(index, "value", None), types)
    return PointerType(element, pointer.addrspace)


def _phi(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.type = c.type()
    while c.accept("["):
        p.operands.append(c.operand(p.type))
        c.expect(",")
        p.operands.append(c.operand(LABEL))
        c.expect("]")
        if c.at(",") and c.at("[", 1):
            c.next()


def _atomicrmw(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.predicate = c.next().text
    read_operands(c, p, 2)
    p.type = p.operands[1].type


def _cmpxchg(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 3)
    p.type = StructType((p.operands[1].type, I1))


def _va_arg(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    read_operands(c, p, 1)
    c.expect(",")
    p.type = c.type()


VALUE_PARSERS: Final[dict[str, OpcodeParser]] = {
    **dict.fromkeys(BINARY_OPCODES, _binary),
    **dict.fromkeys(CAST_OPCODES, _cast),
    **dict.fromkeys(("fneg", "freeze"), _unary),
    **dict.fromkeys(("icmp", "fcmp"), _compare),
    "select": _select,
    "extractelement": _extract_element,
    "insertelement": _insert_element,
    "shufflevector": _shuffle,
    "extractvalue": _extract_value,
    "insertvalue": _insert_value,
    "alloca": _alloca,
    "load": _load,
    "store": _store,
    "getelementptr": _gep,
    "phi": _phi,
    "atomicrmw": _atomicrmw,
    "cmpxchg": _cmpxchg,
    "va_arg": _va_arg,
}
"""By opcode."""


_CONVENTIONS: Final = frozenset("ccc fastcc coldcc tailcc swiftcc swifttailcc ghccc cc".split())


def _call(c: ValueParser, p: ParsedInstruction, opcode: str, _t: NamedTypes) -> None:
    _call_prefix(c)
    written = c.type()
    p.operands.append(c.operand(written))
    _arguments(c, p)
    if isinstance(written, FunctionType):
        p.source_type = written
        p.type = written.result
    else:
        p.type = written
        p.source_type = FunctionType(written, tuple(a.type for a in p.operands[1:]))
    p.trailer_at = c.previous_end
    _call_attributes(c, p)
    if opcode in ("invoke", "callbr"):
        _call_targets(c, p)
        p.trailer_at = c.previous_end


def _call_prefix(c: ValueParser) -> None:
    """Calling convention, result attributes, address space."""
    while True:
        token = c.token
        if token.text in _CONVENTIONS or (token.kind == "word" and token.text.endswith(("cc", "_kernel"))):
            c.next()
            if c.token.kind == "number":
                c.next()
        elif token.text == "addrspace":
            c.next()
            c.skip_parens()
        elif token.kind == "string" or (token.kind == "word" and not c.starts_type()):
            if not c.attribute():
                raise c.error("expected a type")
        elif token.text in INSTRUCTION_FLAGS:
            c.next()
        else:
            return


def _arguments(c: ValueParser, p: ParsedInstruction) -> None:
    c.expect("(")
    attributes: list[str] = []
    while not c.accept(")"):
        if c.accept("..."):  # the variadic arguments that a musttail call forwards
            continue
        type_ = c.type()
        attributes.append("" if type_ is METADATA else c.param_attributes())
        if type_ is METADATA and c.accept("!DIArgList"):
            p.operands.extend(_debug_values(c))
        else:
            p.operands.append(c.operand(type_))
        if not c.at(")"):
            c.expect(",")
    p.arg_attributes = tuple(attributes)


def _debug_values(c: ValueParser) -> list[Value]:
    """The values of `!DIArgList(i32 %x, i32 %y)`, after its name."""
    c.expect("(")
    values: list[Value] = []
    while not c.accept(")"):
        values.append(c.operand())
        c.accept(",")
    return values


def _call_attributes(c: ValueParser, p: ParsedInstruction) -> None:
    """Attributes of a call, and the operands of its bundles: `nounwind #1 [ "align"(ptr %p, i64 64) ]`."""
    while not starts_instruction(c) and not c.at("to") and not c.at("["):
        if c.at("("):
            c.skip_parens()
        elif c.token.kind in ("word", "string", "group", "number") or c.at("="):
            c.next()
        else:
            return
    if not c.accept("["):
        return
    while not c.accept("]"):
        if c.next().kind != "string":
            raise c.error("expected the name of an operand bundle", c.tokens[c.index - 1])
        c.expect("(")
        while not c.accept(")"):
            p.operands.append(c.operand())
            if not c.at(")"):
                c.expect(",")
        if not c.at("]"):
            c.expect(",")


def _call_targets(c: ValueParser, p: ParsedInstruction) -> None:
    c.expect("to")
    p.operands.append(c.label())
    if c.accept("unwind"):
        p.operands.append(c.label())
    elif c.accept("["):
        while not c.accept("]"):
            p.operands.append(c.label())
            if not c.at("]"):
                c.expect(",")


def _ret(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    if not c.accept("void"):
        p.operands.append(c.operand())


def _br(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    if c.at("label"):
        p.operands.append(c.label())
        return
    p.operands.append(c.operand())
    for _ in range(2):
        c.expect(",")
        p.operands.append(c.label())


def _switch(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.operands.append(c.operand())
    c.expect(",")
    p.operands.append(c.label())
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.operand())
        c.expect(",")
        p.operands.append(c.label())


def _indirectbr(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.operands.append(c.operand())
    c.expect(",")
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.label())
        c.accept(",")


def _landingpad(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.type = c.type()
    while c.token.text in ("cleanup", "catch", "filter"):
        if c.next().text != "cleanup":
            p.operands.append(c.operand())


def _resume(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    p.operands.append(c.operand())


def _pad(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    """`catchpad within %cs [ptr null, i32 64]`, `cleanuppad within none []`."""
    p.type = TOKEN
    _within(c, p, c.operand)


def _catch_switch(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    """`catchswitch within none [label %a, label %b] unwind to caller`."""
    p.type = TOKEN
    _within(c, p, c.label)
    _unwind(c, p)


def _within(c: ValueParser, p: ParsedInstruction, read: Callable[[], Value]) -> None:
    """`within %parent [one, two]`."""
    c.expect("within")
    p.operands.append(c.operand(TOKEN))
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(read())
        if not c.at("]"):
            c.expect(",")


def _catch_return(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    """`catchret from %pad to label %next`."""
    c.expect("from")
    p.operands.append(c.operand(TOKEN))
    c.expect("to")
    p.operands.append(c.label())


def _cleanup_return(c: ValueParser, p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    """`cleanupret from %pad unwind label %next`."""
    c.expect("from")
    p.operands.append(c.operand(TOKEN))
    _unwind(c, p)


def _unwind(c: ValueParser, p: ParsedInstruction) -> None:
    c.expect("unwind")
    if c.accept("to"):
        c.expect("caller")
    else:
        p.operands.append(c.label())


def _no_operands(_c: ValueParser, _p: ParsedInstruction, _opcode: str, _t: NamedTypes) -> None:
    """unreachable, fence: no operands."""


_FIRST_WORDS: Final = OPCODES | TAIL_MARKERS | {"uselistorder", "uselistorder_bb"}


def starts_instruction(cursor: TypeParser) -> bool:
    """Whether an instruction, a label or the end is at the cursor, which is outside all brackets."""
    token = cursor.token
    kind = token.kind
    if kind == "word":
        return token.text in _FIRST_WORDS
    if kind == "local":
        return cursor.at("=", 1)
    return kind in ("label", "end") or (kind == "group" and token.text[1].isalpha())


CONTROL_PARSERS: Final[dict[str, OpcodeParser]] = {
    **dict.fromkeys(CALL_OPCODES, _call),
    **dict.fromkeys(("unreachable", "fence"), _no_operands),
    **dict.fromkeys(("catchpad", "cleanuppad"), _pad),
    "catchswitch": _catch_switch,
    "catchret": _catch_return,
    "cleanupret": _cleanup_return,
    "ret": _ret,
    "br": _br,
    "switch": _switch,
    "indirectbr": _indirectbr,
    "landingpad": _landingpad,
    "resume": _resume,
}
"""By opcode."""


PARSERS: Final[dict[str, OpcodeParser]] = {**VALUE_PARSERS, **CONTROL_PARSERS}
"""By opcode."""


def parse_instruction(
    cursor: ValueParser, named_types: dict[str, Type] | None = None, *, typed_pointers: bool = False
) -> Instruction:
    """Parse the instruction at a cursor, and move the cursor past it.

    Args:
        cursor: At the first token of the instruction; spans refer to the cursor's source.
        named_types: Bodies of the module's `%name = type ...`, for GEP and extractvalue results.
        typed_pointers: Whether the module spells pointers as `T*`, which `alloca` needs for its result type.

    Raises:
        ParseError: The text is not a known instruction.
    """
    first = cursor.token
    start = first.start
    cursor.spans = []
    if first.kind == "group":
        return _debug_record(cursor)
    result: str | None = None
    if first.kind == "local" and cursor.at("=", 1):
        result = first.text[1:]
        cursor.index += 2
    flags: list[str] = []
    while cursor.token.text in TAIL_MARKERS:
        flags.append(cursor.next().text)
    opcode = cursor.next()
    while cursor.token.text in INSTRUCTION_FLAGS:
        flags.append(cursor.next().text)
    parser = PARSERS.get(opcode.text)
    if opcode.kind != "word" or parser is None:
        raise cursor.error("expected an instruction", opcode, OPCODES | TAIL_MARKERS)
    parsed = ParsedInstruction()
    parser(cursor, parsed, opcode.text, named_types or {})
    if typed_pointers and opcode.text == "alloca" and isinstance(parsed.type, PointerType):
        parsed.type = PointerType(parsed.source_type, parsed.type.addrspace)
    trailer_at = cursor.previous_end if parsed.trailer_at is None else parsed.trailer_at
    align = _skip_trailer(cursor)
    align = parsed.align if parsed.align is not None else align
    end = cursor.previous_end
    text = cursor.source.text
    return Instruction(
        "#dbg" if opcode.text == "call" and _is_debug_intrinsic(parsed.operands[0]) else opcode.text,
        parsed.type,
        parsed.operands,
        text[start:end],
        result=result,
        spans=[(a - start, b - start) for a, b in cursor.spans],
        span=Span(cursor.source, start, end),
        source_type=parsed.source_type,
        predicate=parsed.predicate,
        indices=parsed.indices,
        arg_attributes=parsed.arg_attributes,
        flags=tuple(flags),
        align=align,
        trailer=text[trailer_at:end],
    )


def _is_debug_intrinsic(callee: Value) -> bool:
    return isinstance(callee, Global) and callee.name.startswith("llvm.dbg.")


def parse_instruction_text(text: str) -> Instruction:
    """Parse a text that consists of one instruction.

    Raises:
        ParseError: The text is not exactly one known instruction.
    """
    source = Source("<instruction>", text)
    cursor = ValueParser(source, tokenize(source))
    instruction = parse_instruction(cursor)
    if cursor.token.kind != "end":
        raise cursor.error("expected the end of the instruction")
    return instruction


def _skip_trailer(cursor: ValueParser) -> int | None:
    """Skip what follows the operands; returns the alignment in it."""
    align: int | None = None
    while not starts_instruction(cursor):
        token = cursor.token
        if token.kind == "local" or token.text in (")", "]", "}", ">", "="):
            raise cursor.error("expected the end of the instruction")
        if token.text in ("(", "[", "{", "<"):
            cursor.skip_parens()
            continue
        cursor.next()
        if token.text == "align" and cursor.token.kind == "number":
            align = cursor.integer()
    return align


def _debug_record(c: ValueParser) -> Instruction:
    """`#dbg_value(i32 %x, !1, !DIExpression(), !2)`.

    Its operands are the values in it, including those in `!DIArgList(i32 %x, i32 %y)`.
    """
    first = c.next()
    c.expect("(")
    operands: list[Value] = []
    while not c.accept(")"):
        if c.accept("!DIArgList"):
            operands.extend(_debug_values(c))
        elif c.token.kind == "meta":
            c.operand(METADATA)
            c.spans.pop()
        else:
            operands.append(c.operand())
        c.accept(",")
    start, end = first.start, c.previous_end
    spans = [(a - start, b - start) for a, b in c.spans]
    return Instruction("#dbg", VOID, operands, c.source.text[start:end], spans=spans, span=Span(c.source, start, end))
