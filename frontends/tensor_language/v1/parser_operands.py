"""Productions that instructions of the first version are made of: operands that may be constants, slices, modifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.cursor import Cursor
from tlx.frontends.tensor_language.parser_attributes import boolean_constant, floating_constant
from tlx.frontends.tensor_language.parser_hints import did_you_mean
from tlx.frontends.tensor_language.parser_operands import list_of
from tlx.frontends.tensor_language.v1.tree import Constant, Operand, Rest, Slice

_Word = TypeVar("_Word", bound=str)


def name(c: Cursor, what: str) -> Name:
    """`local-identifier` that an instruction reads."""
    return c.identifier("local", f"{what} of '{c.keyword}'")


def operand(c: Cursor, what: str) -> Operand:
    """`identifier-or-constant = local-identifier / integer-constant / floating-constant`."""
    if c.kind == "float":
        first = c.at
        return Constant(floating_constant(c), c.span(first))
    return _integral(c, what, "%name or a constant")


def integral_operand(c: Cursor, what: str) -> Operand:
    """`identifier-or-int-constant = local-identifier / integer-constant`."""
    return _integral(c, what, "%name or an integer")


def _integral(c: Cursor, what: str, allowed: str) -> Operand:
    first = c.at
    if c.kind == "local":
        return c.identifier("local", what)
    if c.kind == "integer":
        return Constant(c.integer_constant(what), c.span(first))
    if c.kind == "word" and c.text in ("true", "false"):
        return Constant(boolean_constant(c), c.span(first))
    is_late_comma = c.kind == "," and c.kinds[c.at - 1] in ("modifier", "word")
    hint = "no comma stands behind the instruction's name" if is_late_comma else ""
    raise c.expected(f"{what} of '{c.keyword}' ({allowed})", hint)


def choice(c: Cursor, words: Sequence[_Word]) -> _Word:
    """The modifier that says which instruction it is: `.add` of `arith.add`."""
    for word in words:
        if c.kind == "modifier" and c.text == f".{word}":
            c.at += 1
            c.keyword += f".{word}"
            return word
    known = [f".{word}" for word in words]
    raise c.expected(f"one of {', '.join(known)} behind '{c.keyword}'", did_you_mean(c.text, known))


def index_list(c: Cursor) -> tuple[Operand, ...]:
    """`"[" [identifier-or-int-constant *("," identifier-or-int-constant)] "]"`."""
    c.expect("[", f"and the indices of '{c.keyword}'")
    return list_of(c, lambda c: integral_operand(c, "an index"), "]")


def slice_list(c: Cursor) -> tuple[Slice, ...]:
    """`"[" [index-or-slice *("," index-or-slice)] "]"`."""
    c.expect("[", f"and the slices of '{c.keyword}'")
    return list_of(c, index_or_slice, "]")


def index_or_slice(c: Cursor) -> Slice:
    """`index-or-slice = identifier-or-int-constant [":" (identifier-or-int-constant / "?")] / ":"`."""
    first = c.at
    if c.accept(":"):
        span = c.span(first)
        return Slice(Constant(0, span), Rest(span), span)
    offset = integral_operand(c, "an offset")
    size: Operand | Rest | None = None
    if c.accept(":"):
        at = c.at
        size = Rest(c.span(at)) if c.accept("?") else integral_operand(c, "a size")
    return Slice(offset, size, c.span_from(first))


def expand_shape(c: Cursor) -> tuple[int | Name | Rest, ...]:
    """`expand-shape = constant-or-dynamic-or-identifier 1*("x" constant-or-dynamic-or-identifier)`."""
    entries = [_expand_entry(c)]
    if c.kind != "x":
        raise c.expected("'x' and another size of 'expand'")
    while c.accept("x"):
        entries.append(_expand_entry(c))
    return tuple(entries)


def _expand_entry(c: Cursor) -> int | Name | Rest:
    if c.kind == "?":
        c.at += 1
        return Rest(c.span(c.at - 1))
    if c.kind == "local":
        return c.identifier("local", "a size")
    if c.kind != "integer":
        raise c.expected("a size of 'expand' (an integer, '?' or %name)")
    return c.integer_constant("a size")
