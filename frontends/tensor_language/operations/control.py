"""Loops, branches and SPMD regions, the values they yield, and barriers."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.diagnostics import Note, counted
from tlx.frontends.tensor_language.operations.attributes import check_for_attributes
from tlx.frontends.tensor_language.operations.context import FunctionCheck, LocalVariable, OpenRegion, types_of
from tlx.frontends.tensor_language.operations.core import flag, mnemonic, operation
from tlx.frontends.tensor_language.syntax.cursor import Cursor, region
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
from tlx.frontends.tensor_language.syntax.productions import operand as read_operand
from tlx.frontends.tensor_language.syntax.productions import optional_attributes, return_type_list
from tlx.frontends.tensor_language.types import BOOL, CoopMatrixType, ScalarType, Type
from tlx.frontends.tensor_language.work_items import (
    UNIFORM,
    Spread,
    certainly_varies,
    constant_spread,
    is_uniform,
    lane_spread,
    trip_counts,
    without_base,
)


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


def check_parallel(context: FunctionCheck, node: Parallel) -> None:
    """`parallel` opens an SPMD region."""
    context.region(node.body, node, kind="spmd", converged=True)


def check_foreach(context: FunctionCheck, node: Foreach) -> None:
    """Three lists of one length; `from` and `to` of one integer type."""
    types = _check_ranges(context, node, node.variables, node.starts, node.stops)
    spread = _of_iterations(context, node)
    variables = [(name, type_, spread) for name, type_ in zip(node.variables, types, strict=True)]
    context.region(node.body, node, kind="spmd", variables=variables, converged=True, distributed=node)


def _of_iterations(context: FunctionCheck, node: Foreach) -> Spread | None:
    """With one dimension, neighbouring iterations run on neighbouring work-items; otherwise nothing is known."""
    if len(node.variables) != 1 or len(node.starts) != 1 or len(node.stops) != 1:
        return None
    start, stop = context.constant(node.starts[0]), context.constant(node.stops[0])
    if isinstance(start, int) and isinstance(stop, int) and stop - start < context.subgroup_size:
        return None  # a single iteration is uniform, and with few iterations some work-items are idle
    return lane_spread(context.subgroup_size, exact=False)


def check_foreach_tile(context: FunctionCheck, node: ForeachTile) -> None:
    """As `foreach`, with a tile extent for each variable, the first a multiple of the subgroup size."""
    types = _check_ranges(context, node, node.variables, node.starts, node.stops)
    count = len(node.variables)
    if len(node.sizes) != count or len(node.tile_shape) != count:
        message = (
            f"foreach_tile: the lists must have one length, but they hold {counted(count, 'variable')}, "
            f"{counted(len(node.sizes), 'size')} and {counted(len(node.tile_shape), 'tile extent')}"
        )
        context.error(message, node.span)
    elif min(node.tile_shape, default=1) < 1:
        context.error(f"foreach_tile: tile extents must be at least 1, but one is {min(node.tile_shape)}", node.span)
    elif count and node.tile_shape[0] % context.subgroup_size:
        message = (
            f"foreach_tile: the first tile extent must be a multiple of the subgroup size, {context.subgroup_size}, "
            f"but it is {node.tile_shape[0]}"
        )
        context.error(message, node.span)
    padded = [*types, *[None] * len(node.sizes)]
    names = [*zip(node.variables, types, strict=True), *zip(node.sizes, padded, strict=False)]
    variables = [(name, type_, UNIFORM) for name, type_ in names]
    context.region(node.body, node, kind="spmd", variables=variables, converged=True, distributed=node)


def _check_ranges(
    context: FunctionCheck,
    node: Instruction,
    variables: tuple[Name, ...],
    starts: tuple[Name, ...],
    stops: tuple[Name, ...],
) -> list[ScalarType | None]:
    """The types of the variables."""
    if not len(variables) == len(starts) == len(stops):
        message = (
            f"{mnemonic(node)}: the lists must have one length, but they hold {counted(len(variables), 'variable')}, "
            f"{counted(len(starts), 'start')} and {counted(len(stops), 'end')}"
        )
        context.error(message, node.span)
    lower, upper = ([context.integer(node, name) for name in names] for names in (starts, stops))
    for start, stop, a, b in zip(starts, stops, lower, upper, strict=False):
        _check_same(context, node, start, a, stop, b)
    return [*lower, *[None] * len(variables)][: len(variables)]


def _check_same(
    context: FunctionCheck, node: Instruction, a: Name, a_type: ScalarType | None, b: Name, b_type: ScalarType | None
) -> None:
    if a_type and b_type and a_type != b_type:
        message = f"{a} has type {a_type} but {b} has type {b_type}; the integer types of a range must be the same"
        context.report_operand(node, b, message, a)


def check_for(context: FunctionCheck, node: For) -> None:
    """A range of one integer type; carried values keep their types."""
    start, stop = context.integer(node, node.start), context.integer(node, node.stop)
    _check_same(context, node, node.start, start, node.stop, stop)
    if node.step:
        _check_same(context, node, node.start, start, node.step, context.integer(node, node.step))
        if context.constant(node.step) == 0:
            context.report_operand(node, node.step, f"the step {node.step} is the constant 0; the loop never ends")
    check_for_attributes(context, node.attributes)
    types = types_of(node.types)
    _check_returned(context, node)
    if not len(node.carried) == len(node.initial) == len(types):
        message = (
            f"for: {counted(len(node.carried), 'carried value')} with {counted(len(node.initial), 'initial value')} "
            f"for {counted(len(types), 'type')}; there must be as many of each"
        )
        context.error(message, node.span)
    for name, type_ in zip(node.initial, types, strict=False):
        value = context.value(name)
        if value.type != type_ and type_ is not None:
            context.report_wrong_kind(node, value, name, f"{type_} as the list of types says")
    _check_loop_body(context, node, start, types)


def _check_loop_body(
    context: FunctionCheck, node: For, start: ScalarType | None, types: tuple[Type | None, ...]
) -> None:
    frame, first, last = context.frame, context.value(node.start), context.value(node.stop)
    step = context.value(node.step).spread if node.step else constant_spread(1)
    counts = trip_counts(first.spread, last.spread, step)
    different = counts is not None and min(counts) != max(counts)
    uniform = all(map(is_uniform, (first.spread, last.spread, step)))
    carried_spread = UNIFORM if frame.kind == "collective" else None
    padded = [*types, *[None] * len(node.carried)]
    context.region(
        node.body,
        node,
        variables=[
            (node.variable, start, without_base(first.spread)),
            *((name, type_, carried_spread) for name, type_ in zip(node.carried, padded, strict=False)),
        ],
        yields=types,
        converged=frame.converged and uniform,
        divergent=frame.divergent or ((first if certainly_varies(first.spread) else last) if different else None),
    )
    _check_ends(context, node, node.body, "the body of for")


def check_if(context: FunctionCheck, node: If) -> None:
    """A condition of type `bool`; both regions yield if there are results."""
    condition = context.value(node.condition)
    if condition.type != BOOL:
        context.report_wrong_kind(node, condition, node.condition, "bool")
    _check_returned(context, node)
    types = types_of(node.types)
    if types and node.otherwise is None:
        message = f"if: it returns {_list(types)}, but has no else region: add else {{ ... }} that yields that as well"
        context.error(message, node.span)
    for what, branch in (("the then region of if", node.then), ("the else region of if", node.otherwise)):
        if branch is None:
            continue
        frame = context.frame
        context.region(
            branch,
            node,
            yields=types,
            converged=frame.converged and is_uniform(condition.spread),
            divergent=frame.divergent or (condition if certainly_varies(condition.spread) else None),
        )
        _check_ends(context, node, branch, what)
    _check_chosen_matrices(context, node, condition)


def _check_chosen_matrices(context: FunctionCheck, node: If, condition: LocalVariable) -> None:
    """A coopmatrix belongs to the subgroup, so its work-items cannot choose different ones."""
    if not context.frame.converged or not certainly_varies(condition.spread):
        return
    for reference in node.types:
        if isinstance(reference.type, CoopMatrixType):
            message = (
                f"if: {node.condition} differs between the work-items of a subgroup, but a coopmatrix must be "
                "dynamically uniform: decide by a value that is the same for all of them"
            )
            context.error(message, node.condition.span, condition.note())


def _check_returned(context: FunctionCheck, node: For | If) -> None:
    if len(node.results) != len(node.types):
        names, values = counted(len(node.results), "name"), counted(len(node.types), "returned value")
        message = f"{mnemonic(node)}: {names} for {values}; each needs one"
        context.error(message, node.results[0].span if node.results else node.span)
    for reference in node.types:
        if not isinstance(reference.type, ScalarType | CoopMatrixType):
            message = f"{mnemonic(node)}: only bool, numbers and coopmatrices are returned, not {reference}"
            context.error(message, reference.span)


def _check_ends(context: FunctionCheck, node: Instruction, region: Region, what: str) -> None:
    """The last instruction of a region yields the values that its owner returns."""
    last = region.instructions[-1] if region.instructions else None
    if node.types and not isinstance(last, Yield):
        values = f"{counted(len(node.types), 'value')}: {_list(types_of(node.types))}"
        message = f"{what} must end with yield of {values}"
        context.error(message, last.span if last and last.span else region.span or node.span)


def check_yield(context: FunctionCheck, node: Yield) -> None:
    """The last instruction of a region that returns values; their number and types."""
    frame, owner = context.frame, context.frame.owner
    values = [context.value(name) for name in node.values]
    if frame.yields is None or owner is None:
        where = "a function" if owner is None else mnemonic(owner)
        message = f"yield has no place in the body of {where}: it ends bodies of for, if and cooperative_matrix_apply"
        context.error(message, node.span)
        return
    if frame.last is not node:
        context.error("yield must be the last instruction of its region: move it to the end", node.span)
    _check_yielded(context, node, frame, values)


def _check_yielded(context: FunctionCheck, node: Yield, frame: OpenRegion, values: list[LocalVariable]) -> None:
    types = frame.yields or ()
    if len(types) != len(values):
        expected = f"{len(types)}: {_list(types)}" if types else "none"
        message = f"yield gives {counted(len(values), 'value')} where the types require {expected}"
        notes = [Note("by this instruction", frame.owner.span)] if frame.owner else []
        context.error(message, node.span, *notes)
        return
    for name, value, type_ in zip(node.values, values, types, strict=True):
        if value.type != type_ and type_ is not None:
            context.report_wrong_kind(node, value, name, f"{type_} as the region returns")


def check_barrier(context: FunctionCheck, node: Barrier) -> None:
    """All work-items of the work-group must reach it."""
    frame = context.frame
    if frame.distributed is not None:
        message = (
            f"barrier: the iterations of {mnemonic(frame.distributed)} go to different work-items, so not all of them "
            "would reach it: use parallel, or end the loop before it"
        )
        context.error(message, node.span, Note("in the body of this instruction", frame.distributed.span))
    elif frame.divergent is not None:
        why = f"{frame.divergent.name} differs between work-items, so that not all of them reach it"
        context.error(f"barrier: {why}: move it out of here", node.span, frame.divergent.note())


def _list(types: tuple[Type | None, ...]) -> str:
    return ", ".join(map(str, types))
