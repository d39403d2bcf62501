"""Productions of collective instructions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tlx.frontends.tensor_language.ast.base import Dictionary, Name
from tlx.frontends.tensor_language.ast.collective import (
    Alloca,
    Axpby,
    Cumsum,
    Foreach,
    ForeachTile,
    Gemm,
    Gemv,
    Ger,
    Hadamard,
    LifetimeStop,
    Parallel,
    Sum,
)
from tlx.frontends.tensor_language.cursor import Cursor, Form
from tlx.frontends.tensor_language.parser_attributes import dictionary_attribute
from tlx.frontends.tensor_language.parser_operands import (
    TRANSPOSE,
    identifier_list,
    modifiers,
    operand,
    operands,
    separator,
    transpose,
)
from tlx.frontends.tensor_language.parser_regions import region
from tlx.frontends.tensor_language.parser_types import memref_type, result_type

_ATOMIC: Final = ("atomic",)


def alloca(c: Cursor) -> Alloca:
    """`"alloca" [dictionary-attribute] ":" memref-type`."""
    attributes = dictionary_attribute(c) if c.kind == "{" else Dictionary()
    return Alloca(attributes=attributes, types=result_type(c, memref_type))


def axpby(c: Cursor) -> Axpby:
    """`"axpby" [".atomic"] [transpose] alpha "," A "," beta "," B`."""
    atomic, op = modifiers(c, _ATOMIC, TRANSPOSE)
    alpha, a, beta, b = operands(c, "alpha", "A", "beta", "B")
    return Axpby(atomic=bool(atomic), transpose=transpose(op), alpha=alpha, a=a, beta=beta, b=b)


def cumsum(c: Cursor) -> Cumsum:
    """`"cumsum" [".atomic"] alpha "," A "," integer-constant "," beta "," B`."""
    (atomic,) = modifiers(c, _ATOMIC)
    alpha, a = operands(c, "alpha", "A")
    separator(c, "the mode")
    mode = c.integer_constant("the mode of 'cumsum'")
    separator(c, "beta")
    beta, b = operands(c, "beta", "B")
    return Cumsum(atomic=bool(atomic), alpha=alpha, a=a, mode=mode, beta=beta, b=b)


def sum_(c: Cursor) -> Sum:
    """`"sum" [".atomic"] [transpose] alpha "," A "," beta "," b`."""
    atomic, op = modifiers(c, _ATOMIC, TRANSPOSE)
    alpha, a, beta, b = operands(c, "alpha", "A", "beta", "b")
    return Sum(atomic=bool(atomic), transpose=transpose(op), alpha=alpha, a=a, beta=beta, b=b)


def gemm(c: Cursor) -> Gemm:
    """`"gemm" [".atomic"] [transpose] [transpose] alpha "," A "," B "," beta "," C`."""
    atomic, op_a, op_b = modifiers(c, _ATOMIC, TRANSPOSE, TRANSPOSE)
    alpha, a, b, beta, out = operands(c, "alpha", "A", "B", "beta", "C")
    return Gemm(
        atomic=bool(atomic), transpose_a=transpose(op_a), transpose_b=transpose(op_b),
        alpha=alpha, a=a, b=b, beta=beta, c=out,
    )  # fmt: skip


def gemv(c: Cursor) -> Gemv:
    """`"gemv" [".atomic"] [transpose] alpha "," A "," b "," beta "," c`."""
    atomic, op = modifiers(c, _ATOMIC, TRANSPOSE)
    alpha, a, b, beta, out = operands(c, "alpha", "A", "b", "beta", "c")
    return Gemv(atomic=bool(atomic), transpose=transpose(op), alpha=alpha, a=a, b=b, beta=beta, c=out)


def ger(c: Cursor) -> Ger:
    """`"ger" [".atomic"] alpha "," a "," b "," beta "," C`."""
    (atomic,) = modifiers(c, _ATOMIC)
    alpha, a, b, beta, out = operands(c, "alpha", "a", "b", "beta", "C")
    return Ger(atomic=bool(atomic), alpha=alpha, a=a, b=b, beta=beta, c=out)


def hadamard(c: Cursor) -> Hadamard:
    """`"hadamard" [".atomic"] alpha "," A "," B "," beta "," C`."""
    (atomic,) = modifiers(c, _ATOMIC)
    alpha, a, b, beta, out = operands(c, "alpha", "A", "B", "beta", "C")
    return Hadamard(atomic=bool(atomic), alpha=alpha, a=a, b=b, beta=beta, c=out)


def lifetime_stop(c: Cursor) -> LifetimeStop:
    """`"lifetime_stop" local-identifier`."""
    return LifetimeStop(memref=operand(c, "the memref"))


def parallel(c: Cursor) -> Parallel:
    """`"parallel" region`."""
    return Parallel(body=region(c))


def foreach(c: Cursor) -> Foreach:
    """`"foreach" range region`."""
    variables, starts, stops = range_(c, "the loop variables")
    return Foreach(variables=variables, starts=starts, stops=stops, body=region(c))


def foreach_tile(c: Cursor) -> ForeachTile:
    """`"foreach_tile" range "as" identifier-list "<=" integer-list region`."""
    variables, starts, stops = range_(c, "the tile offsets")
    c.expect_word("as", "and the sizes of the tile")
    sizes = identifier_list(c, "the sizes of the tile")
    c.expect("<=", "behind the sizes of the tile")
    shape = integer_list(c)
    return ForeachTile(variables=variables, starts=starts, stops=stops, sizes=sizes, tile_shape=shape, body=region(c))


def range_(c: Cursor, variables: str) -> tuple[tuple[Name, ...], tuple[Name, ...], tuple[Name, ...]]:
    """`range = identifier-list "=" identifier-list "," identifier-list`: variables, lower and upper bounds."""
    names = identifier_list(c, variables)
    c.expect("=", f"behind {variables}")
    starts = identifier_list(c, "the lower bounds")
    separator(c, "the upper bounds")
    return names, starts, identifier_list(c, "the upper bounds")


def integer_list(c: Cursor) -> tuple[int, ...]:
    """`"(" integer-constant *("," integer-constant) ")"`."""
    c.expect("(", "and the tile shape")
    shape = c.separated(lambda c: c.integer_constant("the tile shape"))
    c.expect(")", "behind the tile shape")
    return shape


FORMS: Final[Mapping[str, Form]] = {
    "alloca": Form(alloca, "one"),
    "axpby": Form(axpby, "none"),
    "cumsum": Form(cumsum, "none"),
    "foreach": Form(foreach, "none"),
    "foreach_tile": Form(foreach_tile, "none"),
    "gemm": Form(gemm, "none"),
    "gemv": Form(gemv, "none"),
    "ger": Form(ger, "none"),
    "hadamard": Form(hadamard, "none"),
    "lifetime_stop": Form(lifetime_stop, "none"),
    "parallel": Form(parallel, "none"),
    "sum": Form(sum_, "none"),
}
