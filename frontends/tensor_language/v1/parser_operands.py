"""Productions that instructions of the first version are made of: operands that may be constants, slices, types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from tlx.diagnostics import ParseError
from tlx.frontends.tensor_language.errors import did_you_mean
from tlx.frontends.tensor_language.syntax.ast.base import Name, TypeRef
from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.parser_operands import boolean_constant, floating_constant, list_of
from tlx.frontends.tensor_language.syntax.parser_types import (
    constant_or_dynamic,
    strided_layout,
    tensor_shape,
    type_ref,
)
from tlx.frontends.tensor_language.types import (
    BOOL,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    INDEX,
    NUMBERS,
    Extent,
    GroupType,
    MemrefType,
    ScalarType,
    Type,
)
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


_INTEGERS: Final = {"i1": BOOL, "i8": I8, "i16": I16, "i32": I32, "i64": I64, "index": INDEX}
_SCALARS: Final = {**_INTEGERS, "f32": F32, "f64": F64}

TypeProduction = Callable[[Cursor], Type]


def any_type(c: Cursor) -> Type:
    """`type = void-type / scalar-type / memref-type / group-type`, of a parameter: not `void`."""
    if c.is_word("void"):
        raise c.error("no value has type 'void'")
    return memref_or_group_type(c) if c.is_word("memref") or c.is_word("group") else scalar_type(c, "a type")


def scalar_type(c: Cursor, what: str = "a scalar type") -> ScalarType:
    """`scalar-type = integer-type / floating-type`."""
    return _scalar(c, what, _SCALARS)


def integer_type(c: Cursor) -> ScalarType:
    """`integer-type = "i" ("1" / "8" / "16" / "32" / "64") / "index"`."""
    return _scalar(c, "an integer type", _INTEGERS)


def memref_type(c: Cursor) -> MemrefType:
    """`memref-type = "memref" "<" scalar-type tensor-shape ["," strided-layout] ">"`."""
    c.expect_word("memref", "and what it holds")
    c.expect("<", "behind 'memref'")
    if c.is_word("i1"):
        raise c.error("version 2 has no memory of single bits: write 'i8', and compare what is loaded with 0")
    element = scalar_type(c)
    shape = tensor_shape(c)
    stride: tuple[Extent, ...] | None = None
    if c.accept(","):
        at = c.at
        stride = strided_layout(c)
        if len(stride) != len(shape):
            raise c.error(f"a memref has a stride for each mode, {len(shape)}, found {len(stride)}", at=at)
    c.expect(">", "at the end of 'memref<...'")
    return MemrefType.packed(element, shape) if stride is None else MemrefType(element, shape, stride)


def memref_or_group_type(c: Cursor) -> MemrefType | GroupType:
    """`memref-or-group-type = memref-type / group-type`."""
    if not c.is_word("group"):
        return memref_type(c)
    c.at += 1
    c.expect("<", "behind 'group'")
    memref = memref_type(c)
    if c.kind == "x":
        raise c.error("groups have no size in version 1: write 'group<memref<...>>'")
    offset: Extent = 0
    if c.accept(","):
        c.expect_word("offset", "behind the memref type")
        c.expect(":", "behind 'offset'")
        offset = constant_or_dynamic(c, "the offset")
    c.expect(">", "at the end of 'group<...'")
    return GroupType(memref, None, offset)


def types_behind_colon(c: Cursor, *productions: TypeProduction) -> tuple[TypeRef, ...]:
    """`":" type *("," type)`, the types of the operands."""
    if not c.accept(":"):
        raise c.expected(f"':' and the types of the operands of '{c.keyword}'")
    types = [type_ref(c, productions[0])]
    for production in productions[1:]:
        if not c.accept(","):
            raise c.expected(f"',' and the type of the next operand of '{c.keyword}'")
        types.append(type_ref(c, production))
    return tuple(types)


def _scalar(c: Cursor, what: str, allowed: dict[str, ScalarType]) -> ScalarType:
    found = allowed.get(c.text) if c.kind == "word" else None
    if found is None:
        raise _no_type(c, what, allowed)
    c.at += 1
    return found


def _no_type(c: Cursor, what: str, allowed: dict[str, ScalarType]) -> ParseError:
    if c.text == "bool":
        return c.expected(what, "version 1 calls it 'i1'")
    hint = "that type is of version 2" if c.text in NUMBERS and c.text not in _SCALARS else ""
    return c.expected(f"{what} ({', '.join(allowed)})", hint, known=() if c.text in _SCALARS else tuple(allowed))
