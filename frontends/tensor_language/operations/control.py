"""Loops, branches, SPMD regions and barriers."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.frontends.tensor_language.operations.core import flag, operation
from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.forms import (
    Piece,
    body,
    comma,
    items,
    mark,
    name_list,
    operand,
    refused,
    tile_shape,
    word,
)
from tlx.frontends.tensor_language.syntax.nodes import Dictionary, Instruction, Name, Region, TypeRef
from tlx.frontends.tensor_language.syntax.parser_regions import region
from tlx.frontends.tensor_language.syntax.productions import operand as read_operand
from tlx.frontends.tensor_language.syntax.productions import optional_attributes, return_type_list


def _range(variables: str) -> tuple[Piece, ...]:
    """`(%i, ...)=(%from, ...),(%to, ...)`."""
    return (
        name_list("variables", variables), mark("=", f"after {variables}"), name_list("starts", "the lower bounds"),
        comma("the upper bounds", ","), name_list("stops", "the upper bounds"),
    )  # fmt: skip


def _read_step(c: Cursor) -> Name | None:
    return read_operand(c, "the step") if c.accept(",") else None


def _read_init(c: Cursor) -> tuple[tuple[Name, ...], tuple[Name, ...], tuple[TypeRef, ...]]:
    """`["init" "(" %carried=%first, ... ")" "->" "(" types ")"]`: the names, the values, the types."""
    if not c.accept_word("init"):
        if c.kind == "->":
            raise c.error("types of results come after 'init(%carried=%first, ...)'")
        return (), (), ()
    c.expect("(", "after 'init'")
    pairs = c.separated(_read_carried)
    c.expect(")", "after the carried values")
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs), return_type_list(c)


def _read_carried(c: Cursor) -> tuple[Name, Name]:
    name = read_operand(c, "a carried value")
    c.expect("=", "after the carried value's name")
    return name, read_operand(c, "the initial value")


def _init_text(init: tuple[tuple[Name, ...], tuple[Name, ...], tuple[TypeRef, ...]]) -> str:
    carried, initial, types = init
    pairs = ", ".join(f"{name}={first}" for name, first in zip(carried, initial, strict=True))
    return f" init({pairs}){_arrow_text(types)}" if pairs else ""


def _arrow_text(types: tuple[TypeRef, ...]) -> str:
    return f" -> ({', '.join(map(str, types))})" if types else ""


@operation("parallel", body(), results="none", region="collective")
@dataclass(kw_only=True, slots=True)
class Parallel(Instruction):
    """`parallel { ... }`: an SPMD region."""

    body: Region


@operation("foreach", *_range("the loop variables"), body(), results="none", region="collective")
@dataclass(kw_only=True, slots=True)
class Foreach(Instruction):
    """`foreach (%i,...)=(%from,...),(%to,...) { ... }`: an SPMD region for each index, in any order."""

    variables: tuple[Name, ...]
    starts: tuple[Name, ...]
    stops: tuple[Name, ...]
    body: Region


@operation(
    "foreach_tile", *_range("the tile offsets"), word("as", "and the sizes of the tile"),
    name_list("sizes", "the sizes of the tile"), mark("<=", "after the sizes of the tile"), tile_shape("tile_shape"),
    body(), results="none", region="collective",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class ForeachTile(Instruction):
    """`foreach_tile (%i,...)=(%from,...),(%to,...) as (%ti,...)<=(32,...) { ... }`: an SPMD region for each tile."""

    variables: tuple[Name, ...]
    starts: tuple[Name, ...]
    stops: tuple[Name, ...]
    sizes: tuple[Name, ...]
    tile_shape: tuple[int, ...]
    body: Region


@operation("barrier", modifiers=(flag("fence_global", "global"), flag("fence_local", "local")), results="none")
@dataclass(kw_only=True, slots=True)
class Barrier(Instruction):
    """`barrier[.global][.local]`."""

    fence_global: bool = False
    fence_local: bool = False


@operation(
    "for", operand("variable", "the loop variable"), mark("=", "after the loop variable"),
    operand("start", "the lower bound"), comma("the upper bound", ","), operand("stop", "the upper bound"),
    Piece(_read_step, lambda step: f",{step}" if step else "", ("step",)),
    refused(":", "version 2 writes no type of the loop variable (it has that of the range): remove ': ...'"),
    Piece(_read_init, _init_text, ("carried", "initial", "types")), body(),
    Piece(optional_attributes, fields=("attributes",)), results="many",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class For(Instruction):
    """`%r,... = for %i=%from,%to[,%step] init(%x=%x0,...)->(type,...) { ... } attributes {...}`."""

    variable: Name
    start: Name
    stop: Name
    step: Name | None = None
    carried: tuple[Name, ...] = ()
    initial: tuple[Name, ...] = ()
    body: Region
    attributes: Dictionary = field(default_factory=Dictionary)


@operation(
    "if", operand("condition", "the condition"),
    Piece(lambda c: return_type_list(c) if c.kind == "->" else (), _arrow_text, ("types",)),
    body("then"), Piece(lambda c: region(c) if c.accept_word("else") else None, fields=("otherwise",)),
    results="many",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class If(Instruction):
    """`%r,... = if %condition -> (type,...) { ... } else { ... }`."""

    condition: Name
    then: Region
    otherwise: Region | None = None


@operation(
    "yield", mark("(", "around the values of 'yield'"), items(")", "values", lambda c: read_operand(c, "a value")),
    results="none",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class Yield(Instruction):
    """`yield (%a, ...)`."""

    values: tuple[Name, ...] = ()
