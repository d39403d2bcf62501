"""Parsing one instruction: a table from opcode to a small function that reads its operands.

What follows the operands (alignment, metadata attachments) is the same for all and is kept as text.
"""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import Source, Span
from tlx.ir.control_parsers import CONTROL
from tlx.ir.cursor import Cursor
from tlx.ir.lexer import tokenize
from tlx.ir.module import Instruction
from tlx.ir.opcodes import FLAGS, OPCODES, TAILS, starts_instruction
from tlx.ir.parsed import Parsed, Parser
from tlx.ir.types import METADATA, VOID, PointerType, Type
from tlx.ir.value_parsers import VALUES
from tlx.ir.values import Value

PARSERS: Final[dict[str, Parser]] = {**VALUES, **CONTROL}
"""By opcode."""


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
    while cursor.token.text in TAILS:
        flags.append(cursor.next().text)
    opcode = cursor.next()
    while cursor.token.text in FLAGS:
        flags.append(cursor.next().text)
    parser = PARSERS.get(opcode.text)
    if opcode.kind != "word" or parser is None:
        raise cursor.error("expected an instruction", opcode, OPCODES | TAILS)
    parsed = Parsed()
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
