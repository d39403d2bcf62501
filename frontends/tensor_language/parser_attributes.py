"""Productions of constants and attributes."""

from __future__ import annotations

from math import isinf

from tlx.frontends.tensor_language.ast.base import Attribute, Dictionary, NamedAttribute
from tlx.frontends.tensor_language.attributes import ATTRIBUTE_NAMES
from tlx.frontends.tensor_language.cursor import MAX_NESTING, Cursor
from tlx.frontends.tensor_language.parser_hints import did_you_mean


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
