"""The pieces that the text of an operation consists of; each piece can be read and written.

operand("value", "the value")     `%v`, called "the value" in messages
comma("the memref")               `,` before the memref
indices()                         `[%i, %j]`
result(number_type)               ` : f32`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tlx.frontends.tensor_language.syntax import productions as read
from tlx.frontends.tensor_language.syntax.cursor import Cursor, region
from tlx.frontends.tensor_language.syntax.nodes import Dictionary, Slice, constant_text, names_text
from tlx.frontends.tensor_language.syntax.productions import TypeProduction, result_type, type_ref


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an operation's text.

    Attributes:
        read: Reads the piece; returns the value of its field, or a tuple of values for several fields.
        write: The text of that value; by default the piece is not printed.
        fields: The fields of the node that it sets; punctuation sets none.
    """

    read: Callable[[Cursor], Any]
    write: Callable[[Any], str] = lambda _: ""
    fields: tuple[str, ...] = ()


def operand(field: str, what: str) -> Piece:
    """`%name`, called `what` in messages."""
    return Piece(lambda c: read.operand(c, what), str, (field,))


def comma(following: str, text: str = ", ") -> Piece:
    """`,` before an operand."""
    return Piece(lambda c: read.separator(c, following), lambda _: text)


def operands(**named: str) -> tuple[Piece, ...]:
    """`%a, %b`: fields, and their names in messages."""
    return tuple(p for field, what in named.items() for p in (comma(what), operand(field, what)))[1:]


def integer(field: str, what: str) -> Piece:
    """`12`."""
    return Piece(lambda c: c.integer_constant(what), str, (field,))


def mark(kind: str, where: str) -> Piece:
    """A bracket, an arrow or an equals sign."""
    return Piece(lambda c: c.expect(kind, where), lambda _: kind)


def word(text: str, where: str) -> Piece:
    """A keyword inside an operation."""
    return Piece(lambda c: c.expect_word(text, where), lambda _: f" {text} ")


def indices() -> Piece:
    """`[%i, ...]`."""
    return Piece(read.index_list, lambda names: f"[{names_text(names)}]", ("indices",))


def position() -> tuple[Piece, ...]:
    """`[%x, %y]`: the position of a matrix in memory."""
    return (
        Piece(read.open_index, lambda _: "["),
        *operands(x="the row index", y="the column index"),
        mark("]", "after the two indices"),
    )


def bracketed(field: str, what: str) -> Piece:
    """`[2]`."""
    return Piece(lambda c: read.bracketed_integer(c, what), lambda number: f"[{number}]", (field,))


def name_list(field: str, what: str) -> Piece:
    """`(%i, %j)`."""
    return Piece(lambda c: read.identifier_list(c, what), lambda names: f"({names_text(names)})", (field,))


def items(close: str, field: str, item: Callable[[Cursor], Any], text: Callable[[Any], str] = str) -> Piece:
    """`a, b)`: a list after its opening bracket."""
    return Piece(
        lambda c: read.list_of(c, item, close), lambda values: f"{', '.join(map(text, values))}{close}", (field,)
    )


def slices(field: str) -> Piece:
    """`%offset:%size, 4]`."""

    def read_slice(c: Cursor) -> Slice:
        first = c.at
        offset = read.integer_constant_or_identifier(c, "an offset")
        extent = read.integer_constant_or_identifier(c, "a size") if c.accept(":") else None
        return Slice(offset, extent, c.span_from(first))

    return items("]", field, read_slice, lambda s: str(s.offset) if s.size is None else f"{s.offset}:{s.size}")


def tile_shape(field: str) -> Piece:
    """`(32, 32)`."""

    def read_shape(c: Cursor) -> tuple[int, ...]:
        c.expect("(", "and the tile shape")
        shape = c.separated(lambda c: c.integer_constant("the tile shape"))
        c.expect(")", "after the tile shape")
        return shape

    return Piece(read_shape, lambda shape: f"({', '.join(map(str, shape))})", (field,))


def expand_shape(field: str) -> Piece:
    """`4 x %n`."""

    def read_shape(c: Cursor) -> tuple[Any, ...]:
        shape = [read.integer_constant_or_identifier(c, "the size of a new mode")]
        if c.kind != "x":
            raise c.expected("'x' and the size of a second new mode")
        while c.accept("x"):
            shape.append(read.integer_constant_or_identifier(c, "the size of a new mode"))
        return tuple(shape)

    return Piece(read_shape, lambda shape: " x ".join(map(str, shape)), (field,))


def constant(field: str) -> Piece:
    """`1.0`."""
    return Piece(read.constant, constant_text, (field,))


def attributes(field: str) -> Piece:
    """`{alignment=64}`, or nothing."""
    return Piece(
        lambda c: read.dictionary_attribute(c) if c.kind == "{" else Dictionary(),
        lambda dictionary: str(dictionary) if dictionary.entries else "",
        (field,),
    )


def result(production: TypeProduction) -> Piece:
    """` : type`."""
    return Piece(
        lambda c: result_type(c, production),
        lambda types: f" : {', '.join(map(str, types))}" if types else "",
        ("types",),
    )


def arrow(production: TypeProduction) -> Piece:
    """` -> type` before a region."""

    def read_type(c: Cursor) -> tuple[Any, ...]:
        c.expect("->", "and the type of the result")
        return (type_ref(c, production),)

    return Piece(read_type, lambda types: f" -> {', '.join(map(str, types))}", ("types",))


def body(field: str = "body") -> Piece:
    """`{ ... }`; the printer writes regions after the head."""
    return Piece(region, fields=(field,))


def refused(kind: str, message: str) -> Piece:
    """A token that version 1 has here, refused with a message."""

    def refuse(c: Cursor) -> None:
        if c.kind == kind:
            raise c.error(message)

    return Piece(refuse)
