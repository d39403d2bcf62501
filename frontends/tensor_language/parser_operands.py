"""Productions that instructions are made of: operands, indices, modifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, get_args

from tlx.diagnostics import ParseError
from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.collective import Transpose
from tlx.frontends.tensor_language.cursor import Cursor
from tlx.frontends.tensor_language.parser_hints import did_you_mean

_Item = TypeVar("_Item")

TRANSPOSE: Final[tuple[Transpose, ...]] = get_args(Transpose)
_CONSTANT_TYPES: Final = {"integer": "index", "float": "f32", "[": "c32"}


def operand(c: Cursor, what: str) -> Name:
    """`local-identifier` that an instruction reads."""
    if c.kind != "local" or (c.kinds[c.at + 1] == "=" and c.begins_assignment(c.at)):
        raise _no_operand(c, what)
    return c.identifier("local", what)


def operands(c: Cursor, *names: str) -> list[Name]:
    """`local-identifier *("," local-identifier)`, as many as there are names of them."""
    found = [operand(c, names[0])]
    for name in names[1:]:
        separator(c, name)
        found.append(operand(c, name))
    return found


def separator(c: Cursor, following: str) -> None:
    """`","` before an operand."""
    if c.kind != ",":
        raise c.expected(f"',' and {following} of '{c.keyword}'")
    c.at += 1


def list_of(c: Cursor, production: Callable[[Cursor], _Item], close: str) -> tuple[_Item, ...]:
    """`[item *("," item)]` and what closes the list."""
    if c.accept(close):
        return ()
    items = c.separated(production)
    if c.kind != close:
        raise c.expected(f"',' or '{close}'")
    c.at += 1
    return items


def identifier_list(c: Cursor, what: str) -> tuple[Name, ...]:
    """`"(" local-identifier *("," local-identifier) ")"`."""
    if c.kind != "(":
        raise c.expected(f"'(' and {what} of '{c.keyword}'", f"write '({c.text})'" if c.kind == "local" else "")
    c.at += 1
    names = list_of(c, lambda c: operand(c, what), ")")
    if not names:
        raise ParseError(f"expected {what} of '{c.keyword}', found '()'", c.span(c.at - 2, c.at - 1))
    return names


def index_list(c: Cursor) -> tuple[Name, ...]:
    """`"[" [local-identifier *("," local-identifier)] "]"`."""
    _open_index(c)
    return list_of(c, _index, "]")


def position(c: Cursor) -> tuple[Name, Name]:
    """`"[" local-identifier "," local-identifier "]"`."""
    _open_index(c)
    x = operand(c, "the row index")
    separator(c, "the column index")
    y = operand(c, "the column index")
    c.expect("]", "behind the two indices")
    return x, y


def bracketed_integer(c: Cursor, what: str) -> int:
    """`"[" integer-constant "]"`."""
    _open_index(c)
    value = c.integer_constant(what)
    c.expect("]", f"behind {what}")
    return value


def integer_constant_or_identifier(c: Cursor, what: str) -> int | Name:
    """`integer-constant-or-identifier = integer-constant / local-identifier`."""
    if c.kind == "local":
        return c.identifier("local", what)
    if c.kind == "integer":
        return c.integer_constant(what)
    old = "sizes that are found by themselves are of version 1" if c.kind in ("?", ":") else ""
    raise c.expected(f"{what} (an integer or %name)", old)


def modifiers(
    c: Cursor, *slots: Sequence[str], hint: Callable[[Cursor, str], str] = lambda _c, _word: ""
) -> list[str | None]:
    """Modifiers behind an instruction's name, each optional, in the order of the slots.

    Args:
        c: The cursor, behind the name.
        slots: The modifiers that may stand in each place, without dots.
        hint: What to say about one that is in none of them.

    Returns:
        The modifier of each slot, None where there is none.
    """
    found: list[str | None] = [None] * len(slots)
    slot = 0
    while c.kinds[c.at] == "modifier":
        word = c.texts[c.at][1:]
        place = next((i for i in range(slot, len(slots)) if word in slots[i]), None)
        if place is None:
            raise _no_modifier(c, word, slots, hint(c, word))
        found[place] = word
        slot = place + 1
        c.at += 1
    return found


def transpose(modifier: str | None) -> Transpose:
    """`transpose = ".t" / ".n"`; `.n` where there is none."""
    return "t" if modifier == "t" else "n"


def _index(c: Cursor) -> Name:
    return operand(c, "an index")


def _open_index(c: Cursor) -> None:
    if c.kind != "[":
        raise c.expected(f"'[' behind {c.shown(c.at - 1)} in '{c.keyword}'")
    c.at += 1


def _no_operand(c: Cursor, what: str) -> ParseError:
    type_ = _CONSTANT_TYPES.get(c.kind) or ("bool" if c.text in ("true", "false") else None)
    if type_ is not None:
        text = "a constant" if c.kind == "[" else c.shown()
        written = "[...]" if c.kind == "[" else c.text[:40]
        hint = f"write '%c = constant {written} : {type_}' before it, with the type it needs, and use %c"
        return c.error(f"expected {what} of '{c.keyword}' (%name), found {text}: {hint}")
    if c.kind == "modifier":
        return c.error(f"'{c.keyword}' has no modifiers, found {c.shown()}")
    if c.kind == "," and c.kinds[c.at - 1] in ("modifier", "word"):
        return c.expected(f"{what} of '{c.keyword}'", "no comma stands behind the instruction's name")
    hint = "the next instruction begins here" if c.kind == "local" and not c.begins_line(c.at) else ""
    return c.expected(f"{what} of '{c.keyword}' (%name)", hint)


def _no_modifier(c: Cursor, word: str, slots: tuple[Sequence[str], ...], hint: str) -> ParseError:
    known = [m for slot in slots for m in slot]
    if word in known:
        order = "".join(f"[{'|'.join('.' + m for m in slot)}]" for slot in slots)
        return c.error(f"'.{word}' stands in the wrong place or too often: write '{c.keyword}{order}'")
    dotted = [f".{m}" for m in dict.fromkeys(known)]
    listed = ", ".join(dotted)
    hint = hint or did_you_mean(f".{word}", dotted)
    return c.error(f"unknown modifier '.{word[:40]}' of '{c.keyword}' (known: {listed})" + (hint and f": {hint}"))
