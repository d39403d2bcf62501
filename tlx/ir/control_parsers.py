"""Parsers of calls, and of the instructions that end blocks or handle exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.cursor import Cursor
from tlx.ir.opcodes import CALLS, FLAGS, starts_instruction
from tlx.ir.parsed import Parsed, Parser, Types
from tlx.ir.types import METADATA, TOKEN, FunctionType
from tlx.ir.values import Value

_CONVENTION: Final = frozenset("ccc fastcc coldcc tailcc swiftcc swifttailcc ghccc cc".split())


def _call(c: Cursor, p: Parsed, opcode: str, _t: Types) -> None:
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
        elif token.text in FLAGS:
            c.next()
        else:
            return


def _arguments(c: Cursor, p: Parsed) -> None:
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


def _call_attributes(c: Cursor, p: Parsed) -> None:
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


def _call_targets(c: Cursor, p: Parsed) -> None:
    c.expect("to")
    p.operands.append(c.label())
    if c.accept("unwind"):
        p.operands.append(c.label())
    elif c.accept("["):
        while not c.accept("]"):
            p.operands.append(c.label())
            if not c.at("]"):
                c.expect(",")


def _ret(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    if not c.accept("void"):
        p.operands.append(c.operand())


def _br(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    if c.at("label"):
        p.operands.append(c.label())
        return
    p.operands.append(c.operand())
    for _ in range(2):
        c.expect(",")
        p.operands.append(c.label())


def _switch(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.operands.append(c.operand())
    c.expect(",")
    p.operands.append(c.label())
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.operand())
        c.expect(",")
        p.operands.append(c.label())


def _indirectbr(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.operands.append(c.operand())
    c.expect(",")
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(c.label())
        c.accept(",")


def _landingpad(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.type = c.type()
    while c.token.text in ("cleanup", "catch", "filter"):
        if c.next().text != "cleanup":
            p.operands.append(c.operand())


def _resume(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    p.operands.append(c.operand())


def _pad(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    """`catchpad within %cs [ptr null, i32 64]`, `cleanuppad within none []`."""
    p.type = TOKEN
    _within(c, p, c.operand)


def _catch_switch(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    """`catchswitch within none [label %a, label %b] unwind to caller`."""
    p.type = TOKEN
    _within(c, p, c.label)
    _unwind(c, p)


def _within(c: Cursor, p: Parsed, read: Callable[[], Value]) -> None:
    """`within %parent [one, two]`."""
    c.expect("within")
    p.operands.append(c.operand(TOKEN))
    c.expect("[")
    while not c.accept("]"):
        p.operands.append(read())
        if not c.at("]"):
            c.expect(",")


def _catch_return(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    """`catchret from %pad to label %next`."""
    c.expect("from")
    p.operands.append(c.operand(TOKEN))
    c.expect("to")
    p.operands.append(c.label())


def _cleanup_return(c: Cursor, p: Parsed, _opcode: str, _t: Types) -> None:
    """`cleanupret from %pad unwind label %next`."""
    c.expect("from")
    p.operands.append(c.operand(TOKEN))
    _unwind(c, p)


def _unwind(c: Cursor, p: Parsed) -> None:
    c.expect("unwind")
    if c.accept("to"):
        c.expect("caller")
    else:
        p.operands.append(c.label())


def _nothing(_c: Cursor, _p: Parsed, _opcode: str, _t: Types) -> None:
    """unreachable, fence: no operands."""


CONTROL: Final[dict[str, Parser]] = {
    **dict.fromkeys(CALLS, _call),
    **dict.fromkeys(("unreachable", "fence"), _nothing),
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
