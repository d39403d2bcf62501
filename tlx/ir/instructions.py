"""Parsing one instruction: a table from opcode to a small function that reads its operands.

What follows the operands (alignment, metadata attachments) is the same for all and is kept as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import Source, Span
from tlx.ir.cursor import Cursor
from tlx.ir.lexer import Token
from tlx.ir.module import Instruction
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
from tlx.ir.values import Value

BINARY: Final = frozenset("add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem".split())
CASTS: Final = frozenset(
    "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp "
    "ptrtoint ptrtoaddr inttoptr bitcast addrspacecast".split()
)
_UNKNOWN: Final = SimpleType("?")
_FLAGS: Final = frozenset(
    "nuw nsw exact disjoint nneg samesign inbounds nusw fast nnan ninf nsz arcp contract reassoc afn volatile atomic "
    "weak tail musttail notail inalloca swifterror".split()
)
_CONVENTION: Final = frozenset("ccc fastcc coldcc tailcc swiftcc swifttailcc ghccc cc".split())


@dataclass(slots=True)
class _Parsed:
    """What a parser found out beyond the operands."""

    type: Type = VOID
    operands: list[Value] = field(default_factory=list[Value])
    source_type: Type | None = None
    predicate: str = ""
    indices: tuple[int, ...] = ()
    arg_attributes: tuple[str, ...] = ()


def parse_instruction(source: Source, tokens: list[Token], named_types: dict[str, Type] | None = None) -> Instruction:
    """Parse the tokens of one instruction (without an end token).

    Args:
        source: The text the tokens come from; spans refer to it.
        tokens: All tokens of the instruction.
        named_types: Bodies of the module's `%name = type ...`, for GEP and extractvalue results.

    Raises:
        ParseError: The text is no instruction the reader knows.
    """
    start, end = tokens[0].start, tokens[-1].end
    text = source.text[start:end]
    span = Span(source, start, end)
    cursor = Cursor(source, [*tokens, Token("end", "", end)])
    if tokens[0].kind == "group":
        operands = _debug_record(cursor)
        spans = [(a - start, b - start) for a, b in cursor.spans]
        return Instruction("#dbg", VOID, operands, text, spans=spans, span=span)
    result: str | None = None
    if tokens[0].kind == "local" and len(tokens) > 1 and tokens[1].text == "=":
        result = tokens[0].text[1:]
        cursor.index = 2
    flags: list[str] = []
    while cursor.token.text in ("tail", "musttail", "notail"):
        flags.append(cursor.next().text)
    opcode = cursor.next()
    while cursor.token.text in _FLAGS:
        flags.append(cursor.next().text)
    parser = _PARSERS.get(opcode.text)
    if opcode.kind != "word" or parser is None:
        raise cursor.error("expected an instruction", opcode)
    parsed = _Parsed()
    cursor_types = named_types or {}
    parser(cursor, parsed, opcode.text, cursor_types)
    trailer = source.text[cursor.previous_end : end]
    return Instruction(
        opcode.text,
        parsed.type,
        parsed.operands,
        text,
        result=result,
        spans=[(a - start, b - start) for a, b in cursor.spans],
        span=span,
        source_type=parsed.source_type,
        predicate=parsed.predicate,
        indices=parsed.indices,
        arg_attributes=parsed.arg_attributes,
        flags=tuple(flags),
        align=_alignment(cursor),
        trailer=trailer,
    )


def parse_text(text: str) -> Instruction:
    """Parse an instruction that is a text of its own."""
    from tlx.ir.lexer import tokenize

    source = Source("<instruction>", text)
    return parse_instruction(source, tokenize(source)[:-1])


def _alignment(cursor: Cursor) -> int | None:
    for index in range(cursor.index, len(cursor.tokens) - 1):
        token = cursor.tokens[index]
        if token.text == "align" and cursor.tokens[index + 1].kind == "number":
            return int(cursor.tokens[index + 1].text)
    return None


def _debug_record(c: Cursor) -> list[Value]:
    """Operands of `#dbg_value(i32 %x, !1, !DIExpression(), !2)` that are values."""
    c.next()
    c.expect("(")
    operands: list[Value] = []
    while not c.accept(")"):
        if c.token.kind == "meta":
            c.operand(METADATA)
            c.spans.pop()
        else:
            operands.append(c.operand())
        c.accept(",")
    return operands


# Parsers by kind of instruction ------------------------------------------------------------------------------------


_Types = dict[str, Type]


def _binary(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.type = c.type()
    p.operands.append(c.operand(p.type))
    c.expect(",")
    p.operands.append(c.operand(p.type))


def _unary(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.operands.append(c.operand())
    p.type = p.operands[0].type


def _resume(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.operands.append(c.operand())


def _cast(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.operands.append(c.operand())
    c.expect("to")
    p.type = c.type()


def _compare(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.predicate = c.next().text
    type_ = c.type()
    p.operands.append(c.operand(type_))
    c.expect(",")
    p.operands.append(c.operand(type_))
    p.type = VectorType(type_.count, I1, type_.scalable) if isinstance(type_, VectorType) else I1


def _operands(c: Cursor, p: _Parsed, count: int) -> None:
    for index in range(count):
        if index:
            c.expect(",")
        p.operands.append(c.operand())


def _select(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 3)
    p.type = p.operands[1].type


def _extract_element(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 2)
    vector = p.operands[0].type
    p.type = vector.element if isinstance(vector, VectorType) else _UNKNOWN


def _insert_element(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 3)
    p.type = p.operands[0].type


def _shuffle(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 3)
    source, mask = p.operands[0].type, p.operands[2].type
    if isinstance(source, VectorType) and isinstance(mask, VectorType):
        p.type = VectorType(mask.count, source.element, mask.scalable)


def _resolve(type_: Type, types: _Types) -> Type:
    return types.get(type_.name, _UNKNOWN) if isinstance(type_, NamedType) else type_


def _element_at(type_: Type, index: int | None, types: _Types) -> Type:
    type_ = _resolve(type_, types)
    if isinstance(type_, (ArrayType, VectorType)):
        return type_.element
    if isinstance(type_, StructType) and index is not None and index < len(type_.elements):
        return type_.elements[index]
    return _UNKNOWN


def _indices(c: Cursor, p: _Parsed) -> None:
    numbers: list[int] = []
    while c.at(",") and c.tokens[c.index + 1].kind == "number":
        c.next()
        numbers.append(c.integer())
    p.indices = tuple(numbers)


def _extract_value(c: Cursor, p: _Parsed, _opcode: str, types: _Types) -> None:
    _operands(c, p, 1)
    _indices(c, p)
    p.type = p.operands[0].type
    for index in p.indices:
        p.type = _element_at(p.type, index, types)


def _insert_value(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 2)
    _indices(c, p)
    p.type = p.operands[0].type


def _alloca(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.source_type = c.type()
    space = 0
    while c.at(","):
        c.next()
        if c.at("align"):
            c.index -= 1
            break
        if c.at("addrspace"):
            c.next()
            space = int(c.skip_parens().strip("()"))
        elif c.token.kind == "meta":
            c.index -= 1
            break
        else:
            p.operands.append(c.operand())
    p.type = PointerType(None, space)


def _load(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.type = c.type()
    c.expect(",")
    _operands(c, p, 1)


def _store(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 2)


def _gep(c: Cursor, p: _Parsed, _opcode: str, types: _Types) -> None:
    while c.token.text in ("inbounds", "nusw", "nuw") or c.at("inrange"):
        if c.next().text == "inrange" and c.at("("):
            c.skip_parens()
    p.source_type = c.type()
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


def _gep_pointer(p: _Parsed, pointer: Type, types: _Types) -> Type:
    if not isinstance(pointer, PointerType) or pointer.pointee is None:
        return pointer
    reached = p.source_type or _UNKNOWN
    for index in p.operands[2:]:
        reached = _element_at(reached, getattr(index, "value", None), types)
    return PointerType(reached, pointer.addrspace)


def _phi(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.type = c.type()
    while True:
        c.expect("[")
        p.operands.append(c.operand(p.type))
        c.expect(",")
        p.operands.append(c.operand(LABEL))
        c.expect("]")
        if not (c.at(",") and c.at("[", 1)):
            return
        c.next()


def _call(c: Cursor, p: _Parsed, opcode: str, _t: _Types) -> None:
    _call_prefix(c)
    written = c.type()
    p.operands.append(c.operand(written))
    _arguments(c, p)
    if isinstance(written, PointerType) and isinstance(written.pointee, FunctionType):
        written = written.pointee
    if isinstance(written, FunctionType):
        p.source_type = written
        p.type = written.result
    else:
        p.type = written
        p.source_type = FunctionType(written, tuple(a.type for a in p.operands[1:]))
    if opcode in ("invoke", "callbr"):
        _call_targets(c, p)


def _call_prefix(c: Cursor) -> None:
    """Calling convention, result attributes, address space."""
    while True:
        token = c.token
        if token.text in _CONVENTION or (token.kind == "word" and token.text.endswith(("cc", "_kernel"))):
            c.next()
            if c.token.kind == "number":
                c.next()
        elif token.text == "addrspace":
            c.next()
            c.skip_parens()
        elif token.kind == "word" and not c.starts_type():
            if not c.attribute():
                raise c.error("expected a type")
        elif token.text in _FLAGS:
            c.next()
        else:
            return


def _arguments(c: Cursor, p: _Parsed) -> None:
    c.expect("(")
    attributes: list[str] = []
    while not c.accept(")"):
        type_ = c.type()
        attributes.append("" if type_ == METADATA else c.param_attributes())
        p.operands.append(c.operand(type_))
        if not c.at(")"):
            c.expect(",")
    p.arg_attributes = tuple(attributes)


def _call_targets(c: Cursor, p: _Parsed) -> None:
    while not c.at("to") and c.token.kind != "end":
        if c.token.text in ("[", "("):
            c.skip_parens()
        else:
            c.next()
    c.expect("to")
    p.operands.append(c.label())
    if c.accept("unwind"):
        p.operands.append(c.label())
    elif c.accept("["):
        while not c.accept("]"):
            p.operands.append(c.label())
            c.accept(",")


def _ret(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    if not c.accept("void"):
        p.operands.append(c.operand())


def _br(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    if c.at("label"):
        p.operands.append(c.label())
        return
    p.operands.append(c.operand())
    for _ in range(2):
        c.expect(",")
        p.operands.append(c.label())


def _switch(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.operands.append(c.operand())
    c.expect(",")
    p.operands.append(c.label())
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.operand())
        c.expect(",")
        p.operands.append(c.label())


def _indirectbr(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.operands.append(c.operand())
    c.expect(",")
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.label())
        c.accept(",")


def _landingpad(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.type = c.type()
    while c.token.text in ("cleanup", "catch", "filter"):
        if c.next().text != "cleanup":
            p.operands.append(c.operand())


def _atomicrmw(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.predicate = c.next().text
    _operands(c, p, 2)
    p.type = p.operands[1].type


def _cmpxchg(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 3)
    p.type = StructType((p.operands[1].type, I1))


def _va_arg(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    _operands(c, p, 1)
    c.expect(",")
    p.type = c.type()


def _pad(c: Cursor, p: _Parsed, opcode: str, _t: _Types) -> None:
    """catchpad, cleanuppad, catchswitch, catchret, cleanupret: note labels, skip the rest."""
    if opcode in ("catchpad", "cleanuppad", "catchswitch"):
        p.type = TOKEN
    if opcode in ("cleanupret", "catchret", "catchpad", "cleanuppad") and c.accept("from", "within"):
        p.operands.append(c.operand(TOKEN))
    while c.token.kind not in ("end", "meta"):
        if c.at("label"):
            p.operands.append(c.label())
        else:
            c.next()


def _nothing(_c: Cursor, _p: _Parsed, _opcode: str, _t: _Types) -> None:
    """unreachable, fence: no operands."""


_Parser = Callable[[Cursor, _Parsed, str, _Types], None]
_PARSERS: Final[dict[str, _Parser]] = {
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(CASTS, _cast),
    **dict.fromkeys(("fneg", "freeze"), _unary),
    "resume": _resume,
    **dict.fromkeys(("icmp", "fcmp"), _compare),
    **dict.fromkeys(("call", "invoke", "callbr"), _call),
    **dict.fromkeys(("unreachable", "fence"), _nothing),
    **dict.fromkeys(("catchpad", "cleanuppad", "catchswitch", "catchret", "cleanupret"), _pad),
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
    "ret": _ret,
    "br": _br,
    "switch": _switch,
    "indirectbr": _indirectbr,
    "landingpad": _landingpad,
    "atomicrmw": _atomicrmw,
    "cmpxchg": _cmpxchg,
    "va_arg": _va_arg,
}
OPCODES: Final = frozenset(_PARSERS)
