"""Productions of the instructions of the first version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NoReturn, cast, get_args

from tlx.frontends.tensor_language.syntax.ast.base import Name, TypeRef
from tlx.frontends.tensor_language.syntax.ast.collective import Transpose
from tlx.frontends.tensor_language.syntax.cursor import Cursor, Form
from tlx.frontends.tensor_language.syntax.parser_instructions import COLLECTIVE_FORMS as COLLECTIVE
from tlx.frontends.tensor_language.syntax.parser_instructions import MIXED_FORMS as MIXED
from tlx.frontends.tensor_language.syntax.parser_instructions import SPMD_FORMS as SPMD
from tlx.frontends.tensor_language.syntax.parser_operands import bracketed_integer, modifiers, separator
from tlx.frontends.tensor_language.syntax.parser_regions import region
from tlx.frontends.tensor_language.syntax.parser_types import type_ref
from tlx.frontends.tensor_language.types import INDEX
from tlx.frontends.tensor_language.v1 import tree
from tlx.frontends.tensor_language.v1.parser_operands import (
    choice,
    expand_shape,
    index_list,
    integer_type,
    integral_operand,
    memref_or_group_type,
    memref_type,
    name,
    operand,
    scalar_type,
    slice_list,
    types_behind_colon,
)

_BINARY: Final[tuple[tree.BinaryOp, ...]] = get_args(tree.BinaryOp)
_UNARY: Final[tuple[tree.UnaryOp, ...]] = get_args(tree.UnaryOp)


def alloca(c: Cursor) -> tree.Alloca:
    """`"alloca" "->" memref-type`."""
    c.expect("->", "and the type of 'alloca'")
    return tree.Alloca(types=(type_ref(c, memref_type),))


def arith(c: Cursor) -> tree.ArithBinary | tree.ArithUnary:
    """`"arith" ("." op operand "," operand / (".neg" / ".not") operand) ":" scalar-type`."""
    op = choice(c, (*_BINARY, *_UNARY))
    first = operand(c, "an operand")
    if op in ("neg", "not"):
        return tree.ArithUnary(op=op, operand=first, types=types_behind_colon(c, scalar_type))
    separator(c, "the second operand")
    second = operand(c, "the second operand")
    return tree.ArithBinary(op=op, lhs=first, rhs=second, types=types_behind_colon(c, scalar_type))


def barrier(_: Cursor) -> tree.Barrier:
    """`"barrier"`."""
    return tree.Barrier()


def blas(c: Cursor) -> tree.Blas:
    """`name *transpose [".atomic"] alpha "," A ["," B] "," beta "," C ":" types of these`."""
    written = c.keyword
    kind = cast(tree.BlasName, "hadamard" if written == "hadamard_product" else written)
    count = tree.TRANSPOSES[kind]
    head = c.at
    *transposes, atomic = modifiers(c, *[("n", "t")] * count, ("atomic",))
    if None in transposes:
        raise c.error(f"version 1 names every transpose: write '{written}{'.n' * count}' or the like", at=head - 1)
    alpha = operand(c, "alpha")
    inputs: list[Name] = []
    for _ in range(tree.INPUTS[kind]):
        separator(c, "a memref")
        inputs.append(name(c, "a memref"))
    separator(c, "beta")
    beta = operand(c, "beta")
    separator(c, "the memref that is updated")
    output = name(c, "the memref that is updated")
    types = types_behind_colon(c, scalar_type, *[memref_type] * len(inputs), scalar_type, memref_type)
    return tree.Blas(
        name=kind, transposes=cast(tuple[Transpose, ...], tuple(transposes)), atomic=atomic is not None, alpha=alpha,
        inputs=tuple(inputs), beta=beta, output=output, types=types,
    )  # fmt: skip


def cast_(c: Cursor) -> tree.Cast:
    """`"cast" identifier-or-constant ":" scalar-type "->" scalar-type`."""
    value = operand(c, "the value")
    (source,) = types_behind_colon(c, scalar_type)
    c.expect("->", "and the type of the result of 'cast'")
    return tree.Cast(operand=value, types=(source, type_ref(c, scalar_type)))


def cmp(c: Cursor) -> tree.Comparison:
    """`"cmp" (".eq" / ".ne" / ".gt" / ".ge" / ".lt" / ".le") operand "," operand ":" scalar-type`."""
    relation = choice(c, tuple(tree.RELATIONS))
    lhs = operand(c, "an operand")
    separator(c, "the second operand")
    rhs = operand(c, "the second operand")
    return tree.Comparison(relation=relation, lhs=lhs, rhs=rhs, types=types_behind_colon(c, scalar_type))


def expand(c: Cursor) -> tree.Expand:
    """`"expand" local-identifier "[" integer-constant "->" expand-shape "]" ":" memref-type`."""
    memref = name(c, "the memref")
    c.expect("[", "and the mode of 'expand'")
    mode = c.integer_constant("the mode")
    c.expect("->", "and the sizes of 'expand'")
    shape = expand_shape(c)
    c.expect("]", "behind the sizes of 'expand'")
    return tree.Expand(operand=memref, mode=mode, shape=shape, types=types_behind_colon(c, memref_type))


def for_(c: Cursor) -> tree.For:
    """`"for" local-identifier "=" from "," to ["," step] [":" integer-type] region`."""
    variable, start, stop = _range(c)
    step = integral_operand(c, "the step") if c.accept(",") else None
    types = _loop_type(c)
    return tree.For(variable=variable, start=start, stop=stop, step=step, types=types, body=region(c))


def foreach(c: Cursor) -> tree.Foreach:
    """`"foreach" local-identifier "=" from "," to [":" integer-type] region`."""
    variable, start, stop = _range(c)
    types = _loop_type(c)
    return tree.Foreach(variable=variable, start=start, stop=stop, types=types, body=region(c))


def _range(c: Cursor) -> tuple[Name, tree.Operand, tree.Operand]:
    variable = name(c, "the variable")
    c.expect("=", "and where the loop starts")
    start = integral_operand(c, "where the loop starts")
    separator(c, "where the loop stops")
    return variable, start, integral_operand(c, "where the loop stops")


def _loop_type(c: Cursor) -> tuple[TypeRef]:
    return (type_ref(c, integer_type) if c.accept(":") else TypeRef(INDEX),)


def fuse(c: Cursor) -> tree.Fuse:
    """`"fuse" local-identifier "[" integer-constant "," integer-constant "]" ":" memref-type`."""
    memref = name(c, "the memref")
    c.expect("[", "and the modes of 'fuse'")
    first = c.integer_constant("the first mode")
    separator(c, "the last mode")
    last = c.integer_constant("the last mode")
    c.expect("]", "behind the modes of 'fuse'")
    return tree.Fuse(operand=memref, first=first, last=last, types=types_behind_colon(c, memref_type))


def group_id(_: Cursor) -> tree.GroupId:
    """`"group_id"`."""
    return tree.GroupId()


def group_size(_: Cursor) -> tree.GroupSize:
    """`"group_size"`."""
    return tree.GroupSize()


def if_(c: Cursor) -> tree.If:
    """`"if" condition ["->" "(" [scalar-type *("," scalar-type)] ")"] region ["else" region]`."""
    condition = integral_operand(c, "the condition")
    types: tuple[TypeRef, ...] = ()
    if c.accept("->"):
        c.expect("(", "before the types of the results")
        types = () if c.kind == ")" else c.separated(_scalar_type)
        c.expect(")", "behind the types of the results")
    then = region(c)
    otherwise = region(c) if c.accept_word("else") else None
    return tree.If(condition=condition, types=types, then=then, otherwise=otherwise)


def load(c: Cursor) -> tree.Load:
    """`"load" local-identifier index-list ":" (memref-type / group-type)`."""
    source = name(c, "the memref or group")
    indices = index_list(c)
    return tree.Load(source=source, indices=indices, types=types_behind_colon(c, memref_or_group_type))


def size(c: Cursor) -> tree.Size:
    """`"size" local-identifier "[" integer-constant "]" ":" memref-type`."""
    memref = name(c, "the memref")
    mode = bracketed_integer(c, "the mode")
    return tree.Size(operand=memref, mode=mode, types=types_behind_colon(c, memref_type))


def store(c: Cursor) -> tree.Store:
    """`"store" local-identifier "," local-identifier index-list ":" memref-type`."""
    value = name(c, "the value")
    separator(c, "the memref")
    target = name(c, "the memref")
    indices = index_list(c)
    return tree.Store(value=value, target=target, indices=indices, types=types_behind_colon(c, memref_type))


def subview(c: Cursor) -> tree.Subview:
    """`"subview" local-identifier slice-list ":" memref-type`."""
    memref = name(c, "the memref")
    slices = slice_list(c)
    return tree.Subview(operand=memref, slices=slices, types=types_behind_colon(c, memref_type))


def yield_(c: Cursor) -> tree.Yield:
    """`"yield" ([operand *("," operand)] ":" [scalar-type *("," scalar-type)] / "(" ")" [":"])`."""
    if c.accept("("):
        c.expect(")", "of 'yield' without values")
        c.accept(":")
        return tree.Yield()
    values = () if c.kind == ":" else c.separated(lambda c: operand(c, "a value"))
    c.expect(":", "and the types of the values of 'yield'")
    types = c.separated(_scalar_type) if c.kind == "word" or values else ()
    return tree.Yield(values=values, types=types)


def _scalar_type(c: Cursor) -> TypeRef:
    return type_ref(c, scalar_type)


def newer(c: Cursor) -> NoReturn:
    """An instruction that only the second version has.

    Raises:
        ParseError: Always.
    """
    old = OLD_SPELLINGS.get(c.keyword)
    hint = f"write '{old}'" if old else "version 2 has it (--std=v2)"
    if c.keyword == "constant":
        hint = "write the constant in the place of the operand"
    raise c.error(f"'{c.keyword}' is no instruction of version 1: {hint}", at=c.at - 1)


OLD_SPELLINGS: Final = {
    **{op: f"arith.{op}" for op in (*_BINARY, *_UNARY)},
    **{new: f"cmp.{old}" for old, new in tree.RELATIONS.items()},
    "num_groups": "group_size",
}
"""What the first version calls instructions that have another name in the second."""

FORMS: Final[Mapping[str, Form]] = {
    **dict.fromkeys((*COLLECTIVE, *MIXED, *SPMD, "math"), Form(newer, "many")),
    "alloca": Form(alloca, "one"),
    "arith": Form(arith, "one"),
    "barrier": Form(barrier, "none"),
    "cast": Form(cast_, "one"),
    "cmp": Form(cmp, "one"),
    "expand": Form(expand, "one"),
    "for": Form(for_, "none"),
    "foreach": Form(foreach, "none"),
    "fuse": Form(fuse, "one"),
    "group_id": Form(group_id, "one"),
    "group_size": Form(group_size, "one"),
    "if": Form(if_, "many"),
    "lifetime_stop": COLLECTIVE["lifetime_stop"],
    "load": Form(load, "one"),
    "size": Form(size, "one"),
    "store": Form(store, "none"),
    "subview": Form(subview, "one"),
    "yield": Form(yield_, "none"),
    **dict.fromkeys((*tree.INPUTS, "hadamard_product"), Form(blas, "none")),
}
