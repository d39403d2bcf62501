"""Parsing one instruction: a table from opcode to a small function that reads its operands.

What follows the operands (alignment, metadata attachments) is the same for all and is kept as text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import Source, Span
from tlx.ir.cursor import Cursor
from tlx.ir.lexer import tokenize
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
_TAILS: Final = frozenset({"tail", "musttail", "notail"})
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
    align: int | None = None
    trailer_at: int | None = None


def parse_instruction(
    cursor: Cursor, named_types: dict[str, Type] | None = None, *, typed_pointers: bool = False
) -> Instruction:
    """Parse the instruction at a cursor, and leave the cursor behind it.

    Args:
        cursor: Where it begins; spans refer to the cursor's source.
        named_types: Bodies of the module's `%name = type ...`, for GEP and extractvalue results.
        typed_pointers: Whether the module spells pointers as `T*`; only `alloca` does not say it itself.

    Raises:
        ParseError: The text is no instruction the reader knows.
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
    while cursor.token.text in _TAILS:
        flags.append(cursor.next().text)
    opcode = cursor.next()
    while cursor.token.text in _FLAGS:
        flags.append(cursor.next().text)
    parser = _PARSERS.get(opcode.text)
    if opcode.kind != "word" or parser is None:
        raise cursor.error("expected an instruction", opcode)
    parsed = _Parsed()
    parser(cursor, parsed, opcode.text, named_types or {})
    if typed_pointers and opcode.text == "alloca" and isinstance(parsed.type, PointerType):
        parsed.type = PointerType(parsed.source_type, parsed.type.addrspace)
    trailer_at = cursor.previous_end if parsed.trailer_at is None else parsed.trailer_at
    align = _skip_trailer(cursor)
    align = parsed.align if parsed.align is not None else align
    end = cursor.previous_end
    text = cursor.source.text
    return Instruction(
        opcode.text,
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


def parse_text(text: str) -> Instruction:
    """Parse an instruction that is a text of its own.

    Raises:
        ParseError: The text is not exactly one instruction the reader knows.
    """
    source = Source("<instruction>", text)
    cursor = Cursor(source, tokenize(source))
    instruction = parse_instruction(cursor)
    if cursor.token.kind != "end":
        raise cursor.error("expected the end of the instruction")
    return instruction


def starts_instruction(cursor: Cursor) -> bool:
    """Whether the token at the cursor, outside all brackets, cannot belong to the instruction before it."""
    token = cursor.token
    kind = token.kind
    if kind == "word":
        return token.text in _STARTS
    if kind == "local":
        return cursor.at("=", 1)
    return kind in ("label", "end") or (kind == "group" and token.text[1].isalpha())


def _skip_trailer(cursor: Cursor) -> int | None:
    """Skip what follows the operands; gives the alignment in it."""
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


def _debug_record(c: Cursor) -> Instruction:
    """`#dbg_value(i32 %x, !1, !DIExpression(), !2)`; its operands are those that are values.

    Those of `!DIArgList(i32 %x, i32 %y)` are as well.
    """
    first = c.next()
    c.expect("(")
    operands: list[Value] = []
    closing = [")"]
    while closing:
        if c.accept(closing[-1]):
            closing.pop()
        elif c.accept("!DIArgList"):
            c.expect("(")
            closing.append(")")
        elif c.token.kind == "meta":
            c.operand(METADATA)
            c.spans.pop()
        else:
            operands.append(c.operand())
        c.accept(",")
    start, end = first.start, c.previous_end
    spans = [(a - start, b - start) for a, b in c.spans]
    return Instruction("#dbg", VOID, operands, c.source.text[start:end], spans=spans, span=Span(c.source, start, end))


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
    p.type = _UNKNOWN
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


def _gep_pointer(p: _Parsed, pointer: Type, types: _Types) -> Type:
    if not isinstance(pointer, PointerType) or pointer.pointee is None:
        return pointer
    reached = p.source_type or _UNKNOWN
    for index in p.operands[2:]:
        reached = _element_at(reached, getattr(index, "value", None), types)
    return PointerType(reached, pointer.addrspace)


def _phi(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    p.type = c.type()
    while c.accept("["):
        p.operands.append(c.operand(p.type))
        c.expect(",")
        p.operands.append(c.operand(LABEL))
        c.expect("]")
        if c.at(",") and c.at("[", 1):
            c.next()


def _call(c: Cursor, p: _Parsed, opcode: str, _t: _Types) -> None:
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
        elif token.kind == "string" or (token.kind == "word" and not c.starts_type()):
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
        if c.accept("..."):  # what a musttail call of a variadic function passes on
            continue
        type_ = c.type()
        attributes.append("" if type_ is METADATA else c.param_attributes())
        p.operands.append(c.operand(type_))
        if not c.at(")"):
            c.expect(",")
    p.arg_attributes = tuple(attributes)


def _call_attributes(c: Cursor, p: _Parsed) -> None:
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


def _call_targets(c: Cursor, p: _Parsed) -> None:
    c.expect("to")
    p.operands.append(c.label())
    if c.accept("unwind"):
        p.operands.append(c.label())
    elif c.accept("["):
        while not c.accept("]"):
            p.operands.append(c.label())
            if not c.at("]"):
                c.expect(",")


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


def _pad(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    """`catchpad within %cs [ptr null, i32 64]`, `cleanuppad within none []`."""
    p.type = TOKEN
    c.expect("within")
    p.operands.append(c.operand(TOKEN))
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.operand())
        if not c.at("]"):
            c.expect(",")


def _catch_switch(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    """`catchswitch within none [label %a, label %b] unwind to caller`."""
    p.type = TOKEN
    c.expect("within")
    p.operands.append(c.operand(TOKEN))
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.label())
        if not c.at("]"):
            c.expect(",")
    _unwind(c, p)


def _catch_return(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    """`catchret from %pad to label %next`."""
    c.expect("from")
    p.operands.append(c.operand(TOKEN))
    c.expect("to")
    p.operands.append(c.label())


def _cleanup_return(c: Cursor, p: _Parsed, _opcode: str, _t: _Types) -> None:
    """`cleanupret from %pad unwind label %next`."""
    c.expect("from")
    p.operands.append(c.operand(TOKEN))
    _unwind(c, p)


def _unwind(c: Cursor, p: _Parsed) -> None:
    c.expect("unwind")
    if c.accept("to"):
        c.expect("caller")
    else:
        p.operands.append(c.label())


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
    **dict.fromkeys(("catchpad", "cleanuppad"), _pad),
    "catchswitch": _catch_switch,
    "catchret": _catch_return,
    "cleanupret": _cleanup_return,
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
_STARTS: Final = frozenset(_PARSERS) | _TAILS | {"uselistorder", "uselistorder_bb"}
