"""Productions that instructions are made of: operands, indices, modifiers, constants and attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf
from typing import Final, TypeVar

from tlx.diagnostics import ParseError
from tlx.frontends.tensor_language.errors import did_you_mean
from tlx.frontends.tensor_language.syntax.cursor import MAX_NESTING, Cursor
from tlx.frontends.tensor_language.syntax.nodes import ATTRIBUTE_NAMES, Attribute, Dictionary, Name, NamedAttribute

_Item = TypeVar("_Item")

_CONSTANT_TYPES: Final = {"integer": "index", "float": "f32", "[": "c32"}


def operand(c: Cursor, what: str) -> Name:
    """`local-identifier` that an instruction reads."""
    kinds, at = c.kinds, c.at
    if kinds[at] != "local" or (kinds[at + 1] == "=" and c.begins_assignment(at)):
        raise _no_operand(c, what)
    return c.name()


def separator(c: Cursor, following: str) -> None:
    """`","` before an operand."""
    if c.kinds[c.at] != ",":
        raise c.expected(f"',' and {following} of '{c.keyword}'")
    c.at += 1


def list_of(c: Cursor, production: Callable[[Cursor], _Item], close: str) -> tuple[_Item, ...]:
    """`[item *("," item)]` and what closes the list."""
    if c.accept(close):
        return ()
    items = c.separated(production)
    if c.kinds[c.at] != close:
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
    open_index(c)
    return list_of(c, _index, "]")


def bracketed_integer(c: Cursor, what: str) -> int:
    """`"[" integer-constant "]"`."""
    open_index(c)
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


def _index(c: Cursor) -> Name:
    return operand(c, "an index")


def open_index(c: Cursor) -> None:
    """`"["` behind the memref or the matrix."""
    if c.kinds[c.at] != "[":
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


def constant(c: Cursor) -> bool | int | float | complex:
    """`constant = boolean-constant / integer-constant / floating-constant / complex-constant`."""
    if c.kind == "integer":
        return c.integer_constant("a constant")
    if c.kind == "float":
        return floating_constant(c)
    if c.kind == "[":
        return complex_constant(c)
    if c.kind == "word" and c.text in ("true", "false"):
        return boolean_constant(c)
    what = "a constant (true, false, an integer, a floating-point number or '[real, imaginary]')"
    raise c.expected(what, known=("true", "false", "inf", "nan"))


def boolean_constant(c: Cursor) -> bool:
    """`boolean-constant = "true" / "false"`."""
    c.at += 1
    return c.texts[c.at - 1] == "true"


def floating_constant(c: Cursor) -> float:
    """`floating-constant = floating-constant-dec / floating-constant-hex / [sign] ("inf" / "nan")`."""
    if c.kind != "float":
        hint = f"write '{c.text}.0'" if c.kind == "integer" else ""
        raise c.expected("a floating-point number", hint)
    text = c.text
    try:
        value = float.fromhex(text) if "x" in text or "X" in text else float(text)
    except OverflowError:
        value = float("inf")
    if isinf(value) and not text.endswith("inf"):
        raise c.error(f"floating-point number out of range: {c.shown()} is too large for f64; infinity is 'inf'")
    c.at += 1
    return value


def complex_constant(c: Cursor) -> complex:
    """`complex-constant = "[" floating-constant "," floating-constant "]"`."""
    c.expect("[")
    real = floating_constant(c)
    c.expect(",", "between the parts of the complex number")
    imaginary = floating_constant(c)
    c.expect("]", "at the end of the complex number")
    return complex(real, imaginary)


def attribute(c: Cursor, depth: int = 0) -> Attribute:
    """`attribute = array- / boolean- / dictionary- / integer- / string-attribute`."""
    first = c.at
    if depth > MAX_NESTING:
        raise c.error(f"attributes nested too deeply: at most {MAX_NESTING} levels")
    if c.kind == "integer":
        value = c.integer_constant("an integer")
    elif c.kind == "string":
        value = c.text[1:-1]
        c.at += 1
    elif c.kind == "[":
        value = array_attribute(c, depth)
    elif c.kind == "{":
        value = dictionary_attribute(c, depth)
    elif c.kind == "word" and c.text in ("true", "false"):
        value = boolean_constant(c)
    else:
        what = "an attribute's value (true, false, an integer, a string, '[...]' or '{...}')"
        raise c.expected(what, known=("true", "false"))
    return Attribute(value, c.span_from(first))


def array_attribute(c: Cursor, depth: int = 0) -> tuple[Attribute, ...]:
    """`array-attribute = "[" [attribute *("," attribute)] "]"`."""
    c.expect("[")
    if c.accept("]"):
        return ()
    values = c.separated(lambda c: attribute(c, depth + 1))
    if c.kind != "]":
        raise c.expected("',' or ']' behind a value of the list")
    c.at += 1
    return values


def dictionary_attribute(c: Cursor, depth: int = 0) -> Dictionary:
    """`dictionary-attribute = "{" [named-attribute *("," named-attribute)] "}"`."""
    first = c.at
    c.expect("{", "before the attributes")
    entries = () if c.kind == "}" else c.separated(lambda c: named_attribute(c, depth))
    if c.kind != "}":
        raise c.expected("',' or '}' behind an attribute")
    c.at += 1
    return Dictionary(entries, c.span_from(first))


def named_attribute(c: Cursor, depth: int = 0) -> NamedAttribute:
    """`named-attribute = attribute-name "=" attribute`."""
    first = c.at
    name, quoted = attribute_name(c)
    c.expect("=", f"behind the attribute '{name}'")
    value = attribute(c, depth + 1)
    return NamedAttribute(name, quoted, value, c.span_from(first))


def attribute_name(c: Cursor) -> tuple[str, bool]:
    """`attribute-name`: one of the known words, or a string; and whether it is a string."""
    if c.kind == "string":
        c.at += 1
        return c.texts[c.at - 1][1:-1], True
    if c.kind != "word":
        raise c.expected("the name of an attribute (a word or a string)")
    if c.text not in ATTRIBUTE_NAMES:
        near = did_you_mean(c.text, ATTRIBUTE_NAMES) or f"known: {', '.join(ATTRIBUTE_NAMES)}"
        raise c.error(f"unknown attribute {c.shown()} ({near}): names of other attributes stand in quotes")
    c.at += 1
    return c.texts[c.at - 1], False


def optional_attributes(c: Cursor) -> Dictionary:
    """`["attributes" dictionary-attribute]`."""
    return dictionary_attribute(c) if c.accept_word("attributes") else Dictionary()
