"""Productions of mixed instructions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, TypeVar, get_args

from tlx.frontends.tensor_language.ast.base import Name, Slice, TypeRef
from tlx.frontends.tensor_language.ast.mixed import (
    ArithBinary,
    ArithBinaryOp,
    ArithUnary,
    ArithUnaryOp,
    Associated,
    AtomicLoad,
    AtomicStore,
    AtomicUpdate,
    Barrier,
    Builtin,
    BuiltinName,
    Cast,
    Comparison,
    ComparisonOp,
    Component,
    Constant,
    Expand,
    For,
    Fuse,
    If,
    Load,
    Math,
    MathOp,
    Scope,
    Semantics,
    Size,
    Store,
    Subview,
    UpdateOp,
    Yield,
)
from tlx.frontends.tensor_language.cursor import Cursor, Form
from tlx.frontends.tensor_language.parser_attributes import constant, optional_attributes
from tlx.frontends.tensor_language.parser_operands import (
    bracketed_integer,
    index_list,
    integer_constant_or_identifier,
    list_of,
    modifiers,
    operand,
    operands,
    separator,
)
from tlx.frontends.tensor_language.parser_regions import region
from tlx.frontends.tensor_language.parser_types import (
    boolean_type,
    index_type,
    integer_type,
    memref_type,
    number_or_coopmatrix_type,
    number_type,
    result_type,
    return_type,
    return_type_list,
    scalar_or_memref_type,
)

_Word = TypeVar("_Word", bound=str)

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
SEMANTICS: Final[tuple[Semantics, ...]] = get_args(Semantics)
COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)
UPDATE_OPS: Final[tuple[UpdateOp, ...]] = get_args(UpdateOp)
_ARITH_BINARY: Final[tuple[ArithBinaryOp, ...]] = get_args(ArithBinaryOp)
_ARITH_UNARY: Final[tuple[ArithUnaryOp, ...]] = get_args(ArithUnaryOp)
_COMPARISONS: Final[tuple[ComparisonOp, ...]] = get_args(ComparisonOp)
_MATH: Final[tuple[MathOp, ...]] = get_args(MathOp)
_WITH_COMPONENT: Final[tuple[BuiltinName, ...]] = ("group_id", "num_groups", "num_subgroups", "subgroup_id")
_PLAIN: Final[tuple[BuiltinName, ...]] = ("subgroup_size", "subgroup_linear_id", "subgroup_local_id")


def arith_binary(op: ArithBinaryOp, c: Cursor) -> ArithBinary:
    """`arith-binary-type local-identifier "," local-identifier ":" return-type`."""
    lhs, rhs = operands(c, "the first operand", "the second operand")
    return ArithBinary(op=op, lhs=lhs, rhs=rhs, types=result_type(c, return_type))


def arith_unary(op: ArithUnaryOp, c: Cursor) -> ArithUnary:
    """`arith-unary-type local-identifier ":" return-type`."""
    return ArithUnary(op=op, operand=operand(c, "the operand"), types=result_type(c, return_type))


def associated(c: Cursor) -> Associated:
    """`"associated" local-identifier ":" boolean-type`."""
    return Associated(operand=operand(c, "the memref or group"), types=result_type(c, boolean_type))


def atomic_load(c: Cursor) -> AtomicLoad:
    """`"atomic_load" [memory-scope] [memory-semantics] local-identifier index-list ":" number-type`."""
    scope, semantics = memory_modifiers(c)
    source = operand(c, "the memref")
    indices = index_list(c)
    types = result_type(c, number_type)
    return AtomicLoad(scope=scope, semantics=semantics, source=source, indices=indices, types=types)


def atomic_store(c: Cursor) -> AtomicStore:
    """`"atomic_store" [memory-scope] [memory-semantics] local-identifier "," local-identifier index-list`."""
    scope, semantics = memory_modifiers(c)
    value, target = operands(c, "the value", "the memref")
    return AtomicStore(scope=scope, semantics=semantics, value=value, target=target, indices=index_list(c))


def atomic_update(op: UpdateOp, c: Cursor) -> AtomicUpdate:
    """`atomic-update-op`, as `atomic_store`, and `":" number-type`."""
    scope, semantics = memory_modifiers(c)
    value, target = operands(c, "the value", "the memref")
    indices = index_list(c)
    types = result_type(c, number_type)
    return AtomicUpdate(
        op=op, scope=scope, semantics=semantics, value=value, target=target, indices=indices, types=types
    )


def barrier(c: Cursor) -> Barrier:
    """`"barrier" [".global"] [".local"]`."""
    fence_global, fence_local = modifiers(c, ("global",), ("local",))
    return Barrier(fence_global=bool(fence_global), fence_local=bool(fence_local))


def builtin(name: BuiltinName, c: Cursor) -> Builtin:
    """`builtin-type [component] ":" integer-type`; the component is there or not, as the builtin demands."""
    slots = (COMPONENTS,) if name in _WITH_COMPONENT else ()
    if slots and c.kind != "modifier":
        raise c.expected(f"'.x', '.y' or '.z' behind '{name}'")
    found = modifiers(c, *slots)
    component: Component | None = next((x for x in COMPONENTS if found and x == found[0]), None)
    return Builtin(name=name, component=component, types=result_type(c, integer_type))


def cast(c: Cursor) -> Cast:
    """`"cast" local-identifier ":" (number-type / coopmatrix-type)`."""
    node = Cast(operand=operand(c, "the operand"), types=result_type(c, number_or_coopmatrix_type))
    if c.kind == "->":
        raise c.error("version 2 writes the type of the result only: 'cast %a : type'")
    return node


def comparison(op: ComparisonOp, c: Cursor) -> Comparison:
    """`comparison-type local-identifier "," local-identifier ":" boolean-type`."""
    lhs, rhs = operands(c, "the first operand", "the second operand")
    return Comparison(op=op, lhs=lhs, rhs=rhs, types=result_type(c, boolean_type))


def constant_(c: Cursor) -> Constant:
    """`"constant" constant ":" return-type`."""
    return Constant(value=constant(c), types=result_type(c, return_type))


def expand(c: Cursor) -> Expand:
    """`"expand" local-identifier "[" integer-constant "->" expand-shape "]" ":" memref-type`."""
    operand_ = operand(c, "the memref")
    c.expect("[", "behind the memref")
    mode = c.integer_constant("the mode")
    c.expect("->", "behind the mode")
    shape = expand_shape(c)
    c.expect("]", "behind the sizes of the new modes")
    return Expand(operand=operand_, mode=mode, shape=shape, types=result_type(c, memref_type))


def expand_shape(c: Cursor) -> tuple[int | Name, ...]:
    """`expand-shape = integer-constant-or-identifier 1*("x" integer-constant-or-identifier)`."""
    shape = [integer_constant_or_identifier(c, "the size of a new mode")]
    if c.kind != "x":
        raise c.expected("'x' and the size of a second new mode")
    while c.accept("x"):
        shape.append(integer_constant_or_identifier(c, "the size of a new mode"))
    return tuple(shape)


def fuse(c: Cursor) -> Fuse:
    """`"fuse" local-identifier "[" integer-constant "," integer-constant "]" ":" memref-type`."""
    operand_ = operand(c, "the memref")
    c.expect("[", "behind the memref")
    first = c.integer_constant("the first mode")
    separator(c, "the last mode")
    last = c.integer_constant("the last mode")
    c.expect("]", "behind the last mode")
    return Fuse(operand=operand_, first=first, last=last, types=result_type(c, memref_type))


def for_(c: Cursor) -> For:
    """`"for" local-identifier "=" from "," to ["," step] [init] region ["attributes" dictionary-attribute]`."""
    variable = operand(c, "the loop variable")
    c.expect("=", "behind the loop variable")
    start, stop = operands(c, "the lower bound", "the upper bound")
    step = operand(c, "the step") if c.accept(",") else None
    if c.kind == ":":
        raise c.error("version 2 writes no type of the loop variable (it has that of the range): remove ': ...'")
    pairs, types = for_init(c)
    carried, initial = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    node = For(
        variable=variable, start=start, stop=stop, step=step, carried=carried, initial=initial, types=types,
        body=region(c),
    )  # fmt: skip
    node.attributes = optional_attributes(c)
    return node


def for_init(c: Cursor) -> tuple[tuple[tuple[Name, Name], ...], tuple[TypeRef, ...]]:
    """`["init" "(" init-value *("," init-value) ")" "->" "(" return-type *("," return-type) ")"]`."""
    if not c.accept_word("init"):
        if c.kind == "->":
            raise c.error("types of results stand behind 'init(%carried=%first, ...)'")
        return (), ()
    c.expect("(", "behind 'init'")
    pairs = c.separated(init_value)
    c.expect(")", "behind the carried values")
    return pairs, return_type_list(c)


def init_value(c: Cursor) -> tuple[Name, Name]:
    """`init-value = local-identifier "=" local-identifier`."""
    name = operand(c, "a carried value")
    c.expect("=", "behind the carried value's name")
    return name, operand(c, "the initial value")


def if_(c: Cursor) -> If:
    """`"if" local-identifier ["->" return-type-list] region ["else" region]`."""
    condition = operand(c, "the condition")
    types = return_type_list(c) if c.kind == "->" else ()
    then = region(c)
    otherwise = region(c) if c.accept_word("else") else None
    return If(condition=condition, then=then, otherwise=otherwise, types=types)


def load(c: Cursor) -> Load:
    """`"load" local-identifier index-list ":" scalar-or-memref-type`."""
    source = operand(c, "the memref or group")
    return Load(source=source, indices=index_list(c), types=result_type(c, scalar_or_memref_type))


def math_unary(op: MathOp, c: Cursor) -> Math:
    """`math-unary-type local-identifier ":" number-type`."""
    return Math(op=op, operand=operand(c, "the operand"), types=result_type(c, number_type))


def size(c: Cursor) -> Size:
    """`"size" local-identifier "[" integer-constant "]" ":" "index"`."""
    operand_ = operand(c, "the memref or group")
    mode = bracketed_integer(c, "the mode")
    return Size(operand=operand_, mode=mode, types=result_type(c, index_type))


def store(c: Cursor) -> Store:
    """`"store" local-identifier "," local-identifier index-list`."""
    value, target = operands(c, "the value", "the memref")
    return Store(value=value, target=target, indices=index_list(c))


def subview(c: Cursor) -> Subview:
    """`"subview" local-identifier "[" [index-or-slice *("," index-or-slice)] "]" ":" memref-type`."""
    operand_ = operand(c, "the memref")
    c.expect("[", "behind the memref")
    slices = list_of(c, index_or_slice, "]")
    return Subview(operand=operand_, slices=slices, types=result_type(c, memref_type))


def index_or_slice(c: Cursor) -> Slice:
    """`index-or-slice = integer-constant-or-identifier [":" integer-constant-or-identifier]`."""
    first = c.at
    offset = integer_constant_or_identifier(c, "an offset")
    extent = integer_constant_or_identifier(c, "a size") if c.accept(":") else None
    return Slice(offset, extent, c.span_from(first))


def yield_(c: Cursor) -> Yield:
    """`"yield" "(" [local-identifier *("," local-identifier)] ")"`."""
    c.expect("(", "around the values of 'yield'")
    return Yield(values=list_of(c, lambda c: operand(c, "a value"), ")"))


def memory_modifiers(c: Cursor) -> tuple[Scope, Semantics]:
    """`[memory-scope] [memory-semantics]`."""
    scope, semantics = modifiers(c, SCOPES, SEMANTICS)
    return chosen(scope, SCOPES, "work_group"), chosen(semantics, SEMANTICS, "relaxed")


def chosen(word: str | None, words: tuple[_Word, ...], default: _Word) -> _Word:
    """The word among some that a modifier is."""
    return next((w for w in words if w == word), default)


FORMS: Final[Mapping[str, Form]] = {
    **{op: Form(partial(arith_binary, op), "one") for op in _ARITH_BINARY},
    **{op: Form(partial(arith_unary, op), "one") for op in _ARITH_UNARY},
    "associated": Form(associated, "one"),
    "atomic_load": Form(atomic_load, "one"),
    "atomic_store": Form(atomic_store, "none"),
    **{f"atomic_{op}": Form(partial(atomic_update, op), "one") for op in UPDATE_OPS},
    "barrier": Form(barrier, "none"),
    **{name: Form(partial(builtin, name), "one") for name in (*_WITH_COMPONENT, *_PLAIN)},
    "cast": Form(cast, "one"),
    **{op: Form(partial(comparison, op), "one") for op in _COMPARISONS},
    "constant": Form(constant_, "one"),
    "expand": Form(expand, "one"),
    "fuse": Form(fuse, "one"),
    "for": Form(for_, "many"),
    "if": Form(if_, "many"),
    "load": Form(load, "one"),
    **{op: Form(partial(math_unary, op), "one") for op in _MATH},
    "size": Form(size, "one"),
    "store": Form(store, "none"),
    "subview": Form(subview, "one"),
    "yield": Form(yield_, "none"),
}
