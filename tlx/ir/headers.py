"""Reading what stands at the top level of LLVM assembly: signatures, named types, where bodies begin."""

from __future__ import annotations

import re
from typing import Final

from tlx.diagnostics import ParseError, Source
from tlx.ir.cursor import Cursor
from tlx.ir.lexer import LazyTokens
from tlx.ir.module import Argument, Signature
from tlx.ir.types import Type

_TO_FIRST_BRACE: Final = re.compile(r'[^"{};]*+\{')
_NAMED_TYPE: Final = re.compile(r"(?m)^[ \t]*(%(?:[-a-zA-Z$._0-9]+|\"[^\"]*\"))\s*=\s*type\b")
_ITEM_WORDS: Final = frozenset(
    "define declare attributes module source_filename target uselistorder uselistorder_bb".split()
)
_CONSTANT_WORDS: Final = ("prefix", "prologue", "personality")
_MOST_DIGITS: Final = 10


def body_start(source: Source, start: int) -> int:
    """Offset of a function's opening brace.

    Result type, parameters, prefix data and metadata may hold braces as well.
    """
    found = _TO_FIRST_BRACE.match(source.text, start)
    header = found.group() if found else ""
    closed = "@" in header and "\n" not in header and header.count("(") == header.count(")") > 0
    if closed and "prefix" not in header and "prologue" not in header:
        return start + len(header) - 1
    cursor = Cursor(source, LazyTokens(source, start))
    while (kind := cursor.token.kind) != "global":
        if kind == "end":
            raise cursor.error("expected a function's name")
        skip_word(cursor)
    cursor.next()
    if not cursor.at("("):
        raise cursor.error("expected '('")
    cursor.skip_parens()
    while not cursor.at("{"):
        if starts_item(cursor):
            raise ParseError("function has no body: a '{' is missing", source.span(start, start + len("define")))
        if cursor.accept(*_CONSTANT_WORDS):
            cursor.typed_value()
        else:
            skip_word(cursor)
    return cursor.token.start


def skip_word(cursor: Cursor) -> None:
    """Skip a token, or a bracket with all that is in it, or `!{...}`."""
    if cursor.token.text in ("(", "[", "{", "<"):
        cursor.skip_parens()
        return
    token = cursor.next()
    if token.kind == "meta" and (cursor.at("(") or (token.text == "!" and cursor.at("{"))):
        cursor.skip_parens()


def starts_item(cursor: Cursor) -> bool:
    """Whether the token at the cursor begins a top-level item, and cannot belong to the declaration before it."""
    token = cursor.token
    if token.kind in ("local", "global", "comdat", "meta"):
        return cursor.at("=", 1)
    return token.kind in ("end", "label") or token.text == "^" or token.text in _ITEM_WORDS


def named_types(source: Source) -> dict[str, Type]:
    """The types of `%name = type ...`, by name with `%`."""
    types: dict[str, Type] = {}
    for found in _NAMED_TYPE.finditer(source.text):
        types[found.group(1)] = Cursor(source, LazyTokens(source, found.end())).type()
    return types


def read_signature(cursor: Cursor) -> Signature:
    """Parse `define ... @name(params)` or `declare ...`; what follows is the caller's."""
    cursor.next()
    prefix_start = cursor.token.start
    while not cursor.starts_type():
        if cursor.token.kind in ("meta", "number"):  # `!dbg !3`, `cc 10`
            skip_word(cursor)
        elif not cursor.attribute():
            raise cursor.error("expected a function's result type")
    prefix = cursor.source.text[prefix_start : cursor.previous_end] if cursor.token.start > prefix_start else ""
    result = cursor.type()
    name = cursor.next()
    if name.kind != "global":
        raise cursor.error("expected a function's name", name)
    arguments, vararg = _parameters(cursor)
    return Signature(name.text[1:], result, arguments, vararg, prefix, "")


def _parameters(cursor: Cursor) -> tuple[list[Argument], bool]:
    cursor.expect("(")
    arguments: list[Argument] = []
    number = 0
    while not cursor.accept(")"):
        if cursor.accept("..."):
            cursor.expect(")")
            return arguments, True
        type_ = cursor.type()
        attributes = cursor.param_attributes()
        name = cursor.next().text[1:] if cursor.token.kind == "local" else str(number)
        number = following(name, number)
        arguments.append(Argument(type_, attributes, name))
        if not cursor.at(")"):
            cursor.expect(",")
    return arguments, False


def following(name: str, number: int) -> int:
    """The number that LLVM gives next, after a value of that name."""
    return int(name) + 1 if name.isdecimal() and len(name) <= _MOST_DIGITS else number
