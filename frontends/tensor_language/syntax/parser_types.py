"""Productions of types. `type` is `any_type` here, the name being taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from tlx.diagnostics import ParseError
from tlx.frontends.tensor_language.errors import did_you_mean, listed
from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.nodes import TypeRef
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

MAX_MODES: Final = 64  # of a memref; not a rule of the language, but a guard against types of endless length

TypeProduction = Callable[[Cursor], Type]

_SCALARS: Final = {"bool": BOOL, **NUMBERS}
_WORDS: Final = (*_SCALARS, "memref", "group", "coopmatrix")
_INTEGERS: Final = {name: t for name, t in NUMBERS.items() if t.kind == "int"}
_ADDRESS_SPACES: Final[tuple[AddressSpace, ...]] = get_args(AddressSpace)
_LAYOUT: Final = "'strided<...>', "
_USES: Final[tuple[MatrixUse, ...]] = get_args(MatrixUse)


def type_ref(c: Cursor, production: TypeProduction) -> TypeRef:
    """A type and where it stands."""
    first = c.at
    return TypeRef(production(c), c.span_from(first))


def result_type(c: Cursor, production: TypeProduction) -> tuple[TypeRef]:
    """`":" type` behind an instruction that gives a value."""
    if c.kinds[c.at] != ":":
        old = "version 2 writes the type of the result behind ':'" if c.kind == "->" else ""
        raise c.expected(f"':' and the type of the result of '{c.keyword}'", old)
    c.at += 1
    return (type_ref(c, production),)


def any_type(c: Cursor) -> Type:
    """`type = boolean-type / number-type / memref-type / group-type / coopmatrix-type`."""
    return _one_of(c, "a type", _SCALARS, memref=True, group=True, coopmatrix=True)


def return_type(c: Cursor) -> Type:
    """`return-type = boolean-type / number-type / coopmatrix-type`."""
    return _one_of(c, "a boolean, number or coopmatrix type", _SCALARS, coopmatrix=True)


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
    return _one_of(c, "a number or coopmatrix type", NUMBERS, coopmatrix=True)


def scalar_or_memref_type(c: Cursor) -> Type:
    """`scalar-or-memref-type = number-type / memref-type`."""
    return _one_of(c, "a number or memref type", NUMBERS, memref=True)


def memref_type(c: Cursor) -> MemrefType:
    """`memref-type = "memref" "<" number-type tensor-shape ["," strided-layout] ["," address-space] ">"`."""
    _expect_word(c, "memref", "a memref type")
    c.expect("<", "behind 'memref'")
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
            raise c.error("expected '>' behind the address space, found ',': a layout 'strided<...>' stands before it")
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
    c.expect("<", "behind 'strided'")
    stride: list[Extent] = []
    while c.kind != ">" or stride:
        stride.append(constant_or_dynamic(c, "a stride"))
        if not c.accept(","):
            break
    _close(c, "strided")
    return tuple(stride)


def address_space(c: Cursor, *, may_be_layout: bool = False) -> AddressSpace:
    """`address-space = "global" / "local"`."""
    for space in _ADDRESS_SPACES:
        if c.accept_word(space):
            return space
    known = ("strided",) if may_be_layout else ()
    raise c.expected(f"{_LAYOUT * may_be_layout}'global' or 'local'", known=(*known, *_ADDRESS_SPACES))


def group_type(c: Cursor) -> GroupType:
    """`group-type = "group" "<" memref-type "x" constant-or-dynamic ["," "offset" ":" constant-or-dynamic] ">"`."""
    _expect_word(c, "group", "a group type")
    c.expect("<", "behind 'group'")
    memref = memref_type(c)
    if c.kind != "x":
        raise c.expected("'x' and the size of the group", "write 'group<memref<...>x?>' where it is not known")
    c.at += 1
    size = constant_or_dynamic(c, "the size of the group")
    offset: Extent = 0
    if c.accept(","):
        c.expect_word("offset", "behind the size of the group")
        c.expect(":", "behind 'offset'")
        offset = constant_or_dynamic(c, "the offset")
    _close(c, "group")
    return GroupType(memref, size, offset)


def coopmatrix_type(c: Cursor) -> CoopMatrixType:
    """`coopmatrix-type = "coopmatrix" "<" number-type 2*2("x" integer-constant) "," matrix-use ">"`."""
    _expect_word(c, "coopmatrix", "a coopmatrix type")
    c.expect("<", "behind 'coopmatrix'")
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
    for use in _USES:
        if c.accept_word(use):
            return use
    raise c.expected("'matrix_a', 'matrix_b' or 'matrix_acc'", known=_USES)


def return_type_list(c: Cursor) -> tuple[TypeRef, ...]:
    """`"->" "(" [return-type *("," return-type)] ")"`."""
    c.expect("->", "and the types of the results")
    if c.kind != "(":
        raise c.expected("'(' before the types of the results", f"write '({c.text})'" if c.kind == "word" else "")
    c.at += 1
    if c.accept(")"):
        return ()
    types = c.separated(lambda c: type_ref(c, return_type))
    c.expect(")", "behind the types of the results")
    return types


def _scalar(c: Cursor, what: str, allowed: dict[str, ScalarType]) -> ScalarType:
    found = allowed.get(c.text) if c.kind == "word" else None
    if found is None:
        raise _no_type(c, what, tuple(allowed))
    c.at += 1
    return found


def _one_of(
    c: Cursor, what: str, scalars: dict[str, ScalarType], *, memref: bool = False, group: bool = False,
    coopmatrix: bool = False,
) -> Type:  # fmt: skip
    text = c.text
    scalar = scalars.get(text)
    if scalar is not None and c.kind == "word":
        c.at += 1
        return scalar
    if memref and text == "memref":
        return memref_type(c)
    if group and text == "group":
        return group_type(c)
    if coopmatrix and text == "coopmatrix":
        return coopmatrix_type(c)
    names = ("memref", memref), ("group", group), ("coopmatrix", coopmatrix)
    raise _no_type(c, what, (*scalars, *(name for name, allowed in names if allowed)))


def _no_type(c: Cursor, what: str, allowed: tuple[str, ...]) -> ParseError:
    if c.text in ("i1", "void"):
        hint = "the boolean type is 'bool'" if c.text == "i1" else "no value has type 'void'"
    elif c.kind == "word" and c.text in _WORDS:
        hint = "version 2 writes the type of the result, not of the operands" if c.kinds[c.at - 1] == ":" else ""
    else:
        hint = did_you_mean(c.text, allowed) if c.kind == "word" else ""
    return c.expected(f"{what} ({listed(allowed, 'or')})", hint)


def _expect_word(c: Cursor, word: str, what: str) -> None:
    if not c.is_word(word):
        raise _no_type(c, what, (word,))
    c.at += 1


def _close(c: Cursor, word: str) -> None:
    if c.kind != ">":
        raise c.expected(f"'>' at the end of '{word}<...'")
    c.at += 1
