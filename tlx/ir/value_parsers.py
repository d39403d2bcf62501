"""Parsers of the instructions that compute a value or access memory."""

from __future__ import annotations

from typing import Final

from tlx.ir.cursor import Cursor
from tlx.ir.opcodes import BINARY, CASTS
from tlx.ir.parsed import UNKNOWN, Parsed, Parser, Types, read_operands
from tlx.ir.types import I1, LABEL, ArrayType, NamedType, PointerType, StructType, Type, VectorType


def _binary(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.type = c.type()
    p.operands.append(c.operand(p.type))
    c.expect(",")
    p.operands.append(c.operand(p.type))


def _unary(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.operands.append(c.operand())
    p.type = p.operands[0].type


def _cast(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.operands.append(c.operand())
    c.expect("to")
    p.type = c.type()


def _compare(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.predicate = c.next().text
    type_ = c.type()
    p.operands.append(c.operand(type_))
    c.expect(",")
    p.operands.append(c.operand(type_))
    p.type = VectorType(type_.count, I1, type_.scalable) if isinstance(type_, VectorType) else I1


def _select(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 3)
    p.type = p.operands[1].type


def _extract_element(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 2)
    vector = p.operands[0].type
    p.type = vector.element if isinstance(vector, VectorType) else UNKNOWN


def _insert_element(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 3)
    p.type = p.operands[0].type


def _shuffle(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 3)
    source, mask = p.operands[0].type, p.operands[2].type
    p.type = UNKNOWN
    if isinstance(source, VectorType) and isinstance(mask, VectorType):
        p.type = VectorType(mask.count, source.element, mask.scalable)


def _resolve(type_: Type, types: Types) -> Type:
    return types.get(type_.name, UNKNOWN) if isinstance(type_, NamedType) else type_


def _element_at(type_: Type, index: int | None, types: Types) -> Type:
    type_ = _resolve(type_, types)
    if isinstance(type_, (ArrayType, VectorType)):
        return type_.element
    if isinstance(type_, StructType) and index is not None and index < len(type_.elements):
        return type_.elements[index]
    return UNKNOWN


def _indices(c: Cursor, p: Parsed) -> None:
    numbers: list[int] = []
    while c.at(",") and c.tokens[c.index + 1].kind == "number":
        c.next()
        numbers.append(c.integer())
    p.indices = tuple(numbers)


def _extract_value(c: Cursor, p: Parsed, _opcode: str, types: Types) -> None:
    read_operands(c, p, 1)
    _indices(c, p)
    p.type = p.operands[0].type
    for index in p.indices:
        p.type = _element_at(p.type, index, types)


def _insert_value(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 2)
    _indices(c, p)
    p.type = p.operands[0].type


def _alloca(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
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


def _load(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.type = c.type()
    c.expect(",")
    read_operands(c, p, 1)


def _store(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 2)


def _gep(c: Cursor, p: Parsed, _opcode: str, types: Types) -> None:
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


def _gep_pointer(p: Parsed, pointer: Type, types: Types) -> Type:
    if not isinstance(pointer, PointerType) or pointer.pointee is None:
        return pointer
    reached = p.source_type or UNKNOWN
    for index in p.operands[2:]:
        reached = _element_at(reached, getattr(index, "value", None), types)
    return PointerType(reached, pointer.addrspace)


def _phi(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.type = c.type()
    while c.accept("["):
        p.operands.append(c.operand(p.type))
        c.expect(",")
        p.operands.append(c.operand(LABEL))
        c.expect("]")
        if c.at(",") and c.at("[", 1):
            c.next()


def _atomicrmw(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.predicate = c.next().text
    read_operands(c, p, 2)
    p.type = p.operands[1].type


def _cmpxchg(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 3)
    p.type = StructType((p.operands[1].type, I1))


def _va_arg(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    read_operands(c, p, 1)
    c.expect(",")
    p.type = c.type()


VALUES: Final[dict[str, Parser]] = {
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(CASTS, _cast),
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
