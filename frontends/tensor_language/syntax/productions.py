"""Productions of types, operands, indices, modifiers, constants and attributes.

Each function is named after its production; only `type` is `any_type` here, because Python has a `type`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isinf
from typing import Final, TypeVar, get_args

from tlx.diagnostics import ParseError
from tlx.frontends.tensor_language.errors import did_you_mean, listed
from tlx.frontends.tensor_language.syntax.cursor import MAX_NESTING, Cursor
from tlx.frontends.tensor_language.syntax.nodes import (
    ATTRIBUTE_NAMES,
    Attribute,
    Dictionary,
    Name,
    NamedAttribute,
    TypeRef,
)
from tlx.frontends.tensor_language.types import (
    BOOL,
    INDEX,
    MAX_INTEGER,
    NUMBERS,
    AddressSpace,
    CoopMatrixType,
    Extent,
    GroupType,
    MatrixUse,
    MemrefType,
    ScalarType,
    Type,
)

MAX_MODES: Final = 64  # of a memref; not a rule of the language, but a limit against types of unbounded length

TypeProduction = Callable[[Cursor], Type]

_SCALARS: Final = {"bool": BOOL, **NUMBERS}
_WORDS: Final = (*_SCALARS, "memref", "group", "coopmatrix")
_INTEGERS: Final = {name: t for name, t in NUMBERS.items() if t.kind == "int"}
_ADDRESS_SPACES: Final[tuple[AddressSpace, ...]] = get_args(AddressSpace)
_USES: Final[tuple[MatrixUse, ...]] = get_args(MatrixUse)
_Word = TypeVar("_Word", bound=str)


def type_ref(c: Cursor, production: TypeProduction) -> TypeRef:
    """A type and its span."""
    first = c.at
    return TypeRef(production(c), c.span_from(first))


def result_type(c: Cursor, production: TypeProduction) -> tuple[TypeRef]:
    """`":" type` after an instruction with a result."""
    if c.kinds[c.at] != ":":
        old = "version 2 writes the type of the result after ':'" if c.kind == "->" else ""
        raise c.expected(f"':' and the type of the result of '{c.keyword}'", old)
    c.at += 1
    return (type_ref(c, production),)


def any_type(c: Cursor) -> Type:
    """`type = boolean-type / number-type / memref-type / group-type / coopmatrix-type`."""
    return _one_of(c, "a type", _WORDS)


def return_type(c: Cursor) -> Type:
    """`return-type = boolean-type / number-type / coopmatrix-type`."""
    return _one_of(c, "a boolean, number or coopmatrix type", (*_SCALARS, "coopmatrix"))


def number_type(c: Cursor) -> ScalarType:
    """`number-type = integer-type / floating-type / complex-type`."""
    return _scalar(c, "a number type", NUMBERS)


def integer_type(c: Cursor) -> ScalarType:
    """`integer-type = "i8" / "i16" / "i32" / "i64" / "index"`."""
    return _scalar(c, "an integer type", _INTEGERS)


def index_type(c: Cursor) -> ScalarType:
    """`"index"`."""
    return _scalar(c, "the type", {"index": INDEX})


def boolean_type(c: Cursor) -> ScalarType:
    """`boolean-type = "bool"`."""
    return _scalar(c, "the type", {"bool": BOOL})


def number_or_coopmatrix_type(c: Cursor) -> Type:
    """`number-type / coopmatrix-type`."""
    return _one_of(c, "a number or coopmatrix type", (*NUMBERS, "coopmatrix"))


def scalar_or_memref_type(c: Cursor) -> Type:
    """`scalar-or-memref-type = number-type / memref-type`."""
    return _one_of(c, "a number or memref type", (*NUMBERS, "memref"))


def memref_type(c: Cursor) -> MemrefType:
    """`memref-type = "memref" "<" number-type tensor-shape ["," strided-layout] ["," address-space] ">"`."""
    _expect_word(c, "memref", "a memref type")
    c.expect("<", "after 'memref'")
    element = number_type(c)
    first = c.at
    shape = tensor_shape(c)
    stride: tuple[Extent, ...] | None = None
    space: AddressSpace = "global"
    if c.kind == "," and c.texts[c.at + 1] == "strided":
        c.at += 1
        stride = strided_layout(c)
    if c.accept(","):
        space = address_space(c, may_be_layout=stride is None)
        if c.kind == ",":
            raise c.error("expected '>' after the address space, found ',': a layout 'strided<...>' comes before it")
    _close(c, "memref")
    if stride is not None:
        return MemrefType(element, shape, stride, space)
    packed = MemrefType.packed(element, shape, space)
    if any(s is not None and abs(s) > MAX_INTEGER for s in packed.stride):
        message = "sizes too large: the strides of a packed memref must be less than 2^63"
        raise ParseError(message, c.span(first, first + 2 * len(shape) - 1))
    return packed


def tensor_shape(c: Cursor) -> tuple[Extent, ...]:
    """`tensor-shape = *("x" constant-or-dynamic)`."""
    shape: list[Extent] = []
    while c.accept("x"):
        shape.append(constant_or_dynamic(c, "a size"))
        if len(shape) > MAX_MODES:
            raise c.error(f"too many modes: a memref has at most {MAX_MODES}", at=c.at - 1)
    return tuple(shape)


def constant_or_dynamic(c: Cursor, what: str) -> Extent:
    """`constant-or-dynamic = integer-constant / "?"`."""
    if c.accept("?"):
        return None
    if c.kind != "integer":
        raise c.expected(f"{what} (an integer or '?')", "sizes of types are known, or '?'" if c.kind == "local" else "")
    return c.integer_constant(what)


def strided_layout(c: Cursor) -> tuple[Extent, ...]:
    """`strided-layout = "strided" "<" [constant-or-dynamic *("," constant-or-dynamic)] ">"`."""
    c.expect_word("strided")
    c.expect("<", "after 'strided'")
    stride: list[Extent] = []
    while c.kind != ">" or stride:
        stride.append(constant_or_dynamic(c, "a stride"))
        if not c.accept(","):
            break
    _close(c, "strided")
    return tuple(stride)


def address_space(c: Cursor, *, may_be_layout: bool = False) -> AddressSpace:
    """`address-space = "global" / "local"`."""
    layout = ("'strided<...>', ", "strided") if may_be_layout else ("",)
    return _word(c, f"{layout[0]}'global' or 'local'", _ADDRESS_SPACES, layout[1:])


def _word(c: Cursor, what: str, words: tuple[_Word, ...], more: tuple[str, ...] = ()) -> _Word:
    """One of several words; a misspelt one may also have been meant as one of `more`."""
    for word in words:
        if c.accept_word(word):
            return word
    raise c.expected(what, known=(*more, *words))


def group_type(c: Cursor) -> GroupType:
    """`group-type = "group" "<" memref-type "x" constant-or-dynamic ["," "offset" ":" constant-or-dynamic] ">"`."""
    _expect_word(c, "group", "a group type")
    c.expect("<", "after 'group'")
    memref = memref_type(c)
    if c.kind != "x":
        raise c.expected("'x' and the size of the group", "write 'group<memref<...>x?>' where it is not known")
    c.at += 1
    size = constant_or_dynamic(c, "the size of the group")
    offset: Extent = 0
    if c.accept(","):
        c.expect_word("offset", "after the size of the group")
        c.expect(":", "after 'offset'")
        offset = constant_or_dynamic(c, "the offset")
    _close(c, "group")
    return GroupType(memref, size, offset)


def coopmatrix_type(c: Cursor) -> CoopMatrixType:
    """`coopmatrix-type = "coopmatrix" "<" number-type 2*2("x" integer-constant) "," matrix-use ">"`."""
    _expect_word(c, "coopmatrix", "a coopmatrix type")
    c.expect("<", "after 'coopmatrix'")
    component = number_type(c)
    c.expect("x", "and the rows of the matrix")
    rows = c.integer_constant("the rows of the matrix")
    c.expect("x", "and the columns of the matrix")
    columns = c.integer_constant("the columns of the matrix")
    c.expect(",", "and the use of the matrix")
    use = matrix_use(c)
    _close(c, "coopmatrix")
    return CoopMatrixType(component, rows, columns, use)


def matrix_use(c: Cursor) -> MatrixUse:
    """`matrix-use = "matrix_a" / "matrix_b" / "matrix_acc"`."""
    return _word(c, "'matrix_a', 'matrix_b' or 'matrix_acc'", _USES)


_COMPOUND: Final[dict[str, TypeProduction]] = {
    "memref": memref_type,
    "group": group_type,
    "coopmatrix": coopmatrix_type,
}


def return_type_list(c: Cursor) -> tuple[TypeRef, ...]:
    """`"->" "(" [return-type *("," return-type)] ")"`."""
    c.expect("->", "and the types of the results")
    if c.kind != "(":
        raise c.expected("'(' before the types of the results", f"write '({c.text})'" if c.kind == "word" else "")
    c.at += 1
    if c.accept(")"):
        return ()
    types = c.separated(lambda c: type_ref(c, return_type))
    c.expect(")", "after the types of the results")
    return types


def _scalar(c: Cursor, what: str, allowed: dict[str, ScalarType]) -> ScalarType:
    type_ = allowed.get(c.text) if c.kind == "word" else None
    if type_ is None:
        raise _no_type(c, what, tuple(allowed))
    c.at += 1
    return type_


def _one_of(c: Cursor, what: str, allowed: tuple[str, ...]) -> Type:
    text = c.text
    if text not in allowed or c.kind != "word":
        raise _no_type(c, what, allowed)
    if text in _COMPOUND:
        return _COMPOUND[text](c)
    c.at += 1
    return _SCALARS[text]


def _no_type(c: Cursor, what: str, allowed: tuple[str, ...]) -> ParseError:
    if c.text in ("i1", "void"):
        hint = "the boolean type is 'bool'" if c.text == "i1" else "no value has type 'void'"
    elif c.kind == "word" and c.text in _WORDS:
        hint = "version 2 writes the type of the result, not of the operands" if c.kinds[c.at - 1] == ":" else ""
    else:
        hint = ""
    return c.expected(f"{what} ({listed(allowed, 'or')})", hint, known=allowed)


def _expect_word(c: Cursor, word: str, what: str) -> None:
    if not c.is_word(word):
        raise _no_type(c, what, (word,))
    c.at += 1


def _close(c: Cursor, word: str) -> None:
    if c.kind != ">":
        raise c.expected(f"'>' at the end of '{word}<...'")
    c.at += 1


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
    """`[item *("," item)]` and the closing bracket."""
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
    c.expect("]", f"after {what}")
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
    """Modifiers after the name of an instruction, each optional, in the order of the slots.

    Args:
        c: The cursor, after the name.
        slots: The modifiers that are legal in each place, without dots.
        hint: Gives a hint for an unknown modifier.

    Returns:
        The modifier of each slot, None if it is missing.
    """
    words: list[str | None] = [None] * len(slots)
    slot = 0
    while c.kinds[c.at] == "modifier":
        word = c.texts[c.at][1:]
        place = next((i for i in range(slot, len(slots)) if word in slots[i]), None)
        if place is None:
            raise _no_modifier(c, word, slots, hint(c, word))
        words[place] = word
        slot = place + 1
        c.at += 1
    return words


def _index(c: Cursor) -> Name:
    return operand(c, "an index")


def open_index(c: Cursor) -> None:
    """`"["` after the memref or the matrix."""
    if c.kinds[c.at] != "[":
        raise c.expected(f"'[' after {c.shown(c.at - 1)} in '{c.keyword}'")
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
        return c.expected(f"{what} of '{c.keyword}'", "no comma follows the instruction's name")
    hint = "the next instruction begins here" if c.kind == "local" and not c.begins_line(c.at) else ""
    return c.expected(f"{what} of '{c.keyword}' (%name)", hint)


def _no_modifier(c: Cursor, word: str, slots: tuple[Sequence[str], ...], hint: str) -> ParseError:
    known = [m for slot in slots for m in slot]
    if word in known:
        order = "".join(f"[{'|'.join('.' + m for m in slot)}]" for slot in slots)
        return c.error(f"'.{word}' is misplaced or repeated: write '{c.keyword}{order}'")
    dotted = [f".{m}" for m in dict.fromkeys(known)]
    listed = ", ".join(dotted)
    after = f": {hint}" if hint else did_you_mean(f".{word}", dotted)
    return c.error(f"unknown modifier '.{word[:40]}' of '{c.keyword}' (known: {listed}){after}")


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
        raise c.expected("',' or ']' after a value of the list")
    c.at += 1
    return values


def dictionary_attribute(c: Cursor, depth: int = 0) -> Dictionary:
    """`dictionary-attribute = "{" [named-attribute *("," named-attribute)] "}"`."""
    first = c.at
    c.expect("{", "before the attributes")
    entries = () if c.kind == "}" else c.separated(lambda c: named_attribute(c, depth))
    if c.kind != "}":
        raise c.expected("',' or '}' after an attribute")
    c.at += 1
    return Dictionary(entries, c.span_from(first))


def named_attribute(c: Cursor, depth: int = 0) -> NamedAttribute:
    """`named-attribute = attribute-name "=" attribute`."""
    first = c.at
    name, quoted = attribute_name(c)
    c.expect("=", f"after the attribute '{name}'")
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
        near = did_you_mean(c.text, ATTRIBUTE_NAMES)
        known = f"known: {', '.join(ATTRIBUTE_NAMES)}; names of others are written in quotes"
        raise c.error(f"unknown attribute {c.shown()} ({known}){near}")
    c.at += 1
    return c.texts[c.at - 1], False


def optional_attributes(c: Cursor) -> Dictionary:
    """`["attributes" dictionary-attribute]`."""
    return dictionary_attribute(c) if c.accept_word("attributes") else Dictionary()
