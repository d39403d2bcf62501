"""Productions of instructions: collective ones, mixed ones, SPMD ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, TypeVar, get_args

from tlx.frontends.tensor_language.syntax.ast.base import Dictionary, Name, Slice, TypeRef
from tlx.frontends.tensor_language.syntax.ast.collective import (
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
from tlx.frontends.tensor_language.syntax.ast.mixed import (
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
from tlx.frontends.tensor_language.syntax.ast.spmd import (
    Checked,
    CooperativeMatrixApply,
    CooperativeMatrixAtomicUpdate,
    CooperativeMatrixConstruct,
    CooperativeMatrixExtract,
    CooperativeMatrixInsert,
    CooperativeMatrixLoad,
    CooperativeMatrixMulAdd,
    CooperativeMatrixPrefetch,
    CooperativeMatrixReduce,
    CooperativeMatrixScale,
    CooperativeMatrixStore,
    ReduceMode,
    ScanKind,
    SubgroupBroadcast,
    SubgroupOperation,
)
from tlx.frontends.tensor_language.syntax.cursor import Cursor, Form
from tlx.frontends.tensor_language.syntax.parser_operands import (
    TRANSPOSE,
    bracketed_integer,
    constant,
    dictionary_attribute,
    identifier_list,
    index_list,
    integer_constant_or_identifier,
    list_of,
    modifiers,
    operand,
    operands,
    optional_attributes,
    position,
    separator,
    transpose,
)
from tlx.frontends.tensor_language.syntax.parser_regions import region
from tlx.frontends.tensor_language.syntax.parser_types import (
    boolean_type,
    coopmatrix_type,
    index_type,
    integer_type,
    memref_type,
    number_or_coopmatrix_type,
    number_type,
    result_type,
    return_type,
    return_type_list,
    scalar_or_memref_type,
    type_ref,
)

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


COLLECTIVE_FORMS: Final[Mapping[str, Form]] = {
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


MIXED_FORMS: Final[Mapping[str, Form]] = {
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
CHECKED: Final[tuple[Checked, ...]] = get_args(Checked)
_SCANS: Final[tuple[ScanKind, ...]] = get_args(ScanKind)
_REDUCE_MODES: Final[tuple[ReduceMode, ...]] = get_args(ReduceMode)


def cooperative_matrix_apply(c: Cursor) -> CooperativeMatrixApply:
    """`"cooperative_matrix_apply" "(" row "," column "," value ")" "=" matrix "->" coopmatrix-type region`."""
    c.expect("(", "and the names of row, column and value")
    row, column, value = operands(c, "the name of the row", "the name of the column", "the name of the value")
    c.expect(")", "behind the names of row, column and value")
    c.expect("=", "and the matrix")
    matrix = operand(c, "the matrix")
    c.expect("->", "and the type of the result")
    types = (type_ref(c, coopmatrix_type),)
    return CooperativeMatrixApply(row=row, column=column, value_name=value, matrix=matrix, types=types, body=region(c))


def cooperative_matrix_load(c: Cursor, *, atomic: bool) -> CooperativeMatrixLoad:
    """`"cooperative_matrix_load" [transpose] [checked-flag] local-identifier position ":" coopmatrix-type`.

    `cooperative_matrix_atomic_load` has `[memory-scope] [memory-semantics]` too.
    """
    op, checked, scope, semantics = access_modifiers(c, atomic=atomic)
    source = operand(c, "the memref")
    x, y = position(c)
    return CooperativeMatrixLoad(
        transpose=transpose(op), checked=checked_flag(checked), x=x, y=y, source=source, atomic=atomic,
        scope=chosen(scope, SCOPES, "work_group"), semantics=chosen(semantics, SEMANTICS, "relaxed"),
        types=result_type(c, coopmatrix_type),
    )  # fmt: skip


def cooperative_matrix_store(c: Cursor, *, atomic: bool) -> CooperativeMatrixStore:
    """`"cooperative_matrix_store" [transpose] [checked-flag] local-identifier "," local-identifier position`.

    `cooperative_matrix_atomic_store` has `[memory-scope] [memory-semantics]` too.
    """
    op, checked, scope, semantics = access_modifiers(c, atomic=atomic)
    matrix, target = operands(c, "the matrix", "the memref")
    x, y = position(c)
    return CooperativeMatrixStore(
        transpose=transpose(op), checked=checked_flag(checked), x=x, y=y, matrix=matrix, target=target, atomic=atomic,
        scope=chosen(scope, SCOPES, "work_group"), semantics=chosen(semantics, SEMANTICS, "relaxed"),
    )  # fmt: skip


def cooperative_matrix_atomic_update(op: UpdateOp, c: Cursor) -> CooperativeMatrixAtomicUpdate:
    """`cooperative-matrix-atomic-update-op`, as `cooperative_matrix_atomic_store`, and `":" coopmatrix-type`."""
    op_, checked, scope, semantics = access_modifiers(c, atomic=True)
    matrix, target = operands(c, "the matrix", "the memref")
    x, y = position(c)
    return CooperativeMatrixAtomicUpdate(
        op=op, transpose=transpose(op_), checked=checked_flag(checked), x=x, y=y, matrix=matrix, target=target,
        scope=chosen(scope, SCOPES, "work_group"), semantics=chosen(semantics, SEMANTICS, "relaxed"),
        types=result_type(c, coopmatrix_type),
    )  # fmt: skip


def cooperative_matrix_construct(c: Cursor) -> CooperativeMatrixConstruct:
    """`"cooperative_matrix_construct" local-identifier ":" coopmatrix-type`."""
    return CooperativeMatrixConstruct(value=operand(c, "the value"), types=result_type(c, coopmatrix_type))


def cooperative_matrix_extract(c: Cursor) -> CooperativeMatrixExtract:
    """`"cooperative_matrix_extract" local-identifier "[" integer-constant "]" ":" number-type`."""
    matrix = operand(c, "the matrix")
    index = bracketed_integer(c, "the component's number")
    return CooperativeMatrixExtract(matrix=matrix, index=index, types=result_type(c, number_type))


def cooperative_matrix_insert(c: Cursor) -> CooperativeMatrixInsert:
    """`"cooperative_matrix_insert" operand "," operand "[" integer-constant "]" ":" coopmatrix-type`."""
    value, matrix = operands(c, "the value", "the matrix")
    index = bracketed_integer(c, "the component's number")
    return CooperativeMatrixInsert(value=value, matrix=matrix, index=index, types=result_type(c, coopmatrix_type))


def cooperative_matrix_mul_add(c: Cursor) -> CooperativeMatrixMulAdd:
    """`"cooperative_matrix_mul_add" A "," B "," C ":" coopmatrix-type`."""
    a, b, addend = operands(c, "A", "B", "C")
    return CooperativeMatrixMulAdd(a=a, b=b, c=addend, types=result_type(c, coopmatrix_type))


def cooperative_matrix_prefetch(c: Cursor) -> CooperativeMatrixPrefetch:
    """`"cooperative_matrix_prefetch" level "," local-identifier position "," rows "," columns`, integers all three."""
    level = c.integer_constant("the cache level")
    separator(c, "the memref")
    source = operand(c, "the memref")
    x, y = position(c)
    separator(c, "the number of rows")
    rows = c.integer_constant("the number of rows")
    separator(c, "the number of columns")
    columns = c.integer_constant("the number of columns")
    return CooperativeMatrixPrefetch(level=level, source=source, x=x, y=y, rows=rows, columns=columns)


def cooperative_matrix_reduce(op: UpdateOp, c: Cursor) -> CooperativeMatrixReduce:
    """`coopmatrix-reduce-op reduce-mode local-identifier ":" coopmatrix-type`."""
    if c.kind != "modifier":
        raise c.expected(f"'.row' or '.column' behind '{c.keyword}'")
    (mode,) = modifiers(c, _REDUCE_MODES)
    matrix = operand(c, "the matrix")
    types = result_type(c, coopmatrix_type)
    return CooperativeMatrixReduce(op=op, mode=chosen(mode, _REDUCE_MODES, "row"), matrix=matrix, types=types)


def cooperative_matrix_scale(c: Cursor) -> CooperativeMatrixScale:
    """`"cooperative_matrix_scale" local-identifier "," local-identifier ":" coopmatrix-type`."""
    scalar, matrix = operands(c, "the scalar", "the matrix")
    return CooperativeMatrixScale(scalar=scalar, matrix=matrix, types=result_type(c, coopmatrix_type))


def subgroup_broadcast(c: Cursor) -> SubgroupBroadcast:
    """`"subgroup_broadcast" local-identifier "," local-identifier ":" number-type`."""
    value, lane = operands(c, "the value", "the work-item's number")
    return SubgroupBroadcast(value=value, lane=lane, types=result_type(c, number_type))


def subgroup_operation(kind: ScanKind, op: UpdateOp, c: Cursor) -> SubgroupOperation:
    """`subgroup-operation-type local-identifier ":" number-type`."""
    return SubgroupOperation(kind=kind, op=op, value=operand(c, "the value"), types=result_type(c, number_type))


def access_modifiers(c: Cursor, *, atomic: bool) -> list[str | None]:
    """`[transpose] [checked-flag]`, and `[memory-scope] [memory-semantics]` where it is atomic; always four."""
    if atomic:
        return modifiers(c, TRANSPOSE, CHECKED, SCOPES, SEMANTICS)
    found = modifiers(c, TRANSPOSE, CHECKED, hint=_scope_hint)
    return [*found, None, None]


def _scope_hint(c: Cursor, word: str) -> str:
    """Where the modifiers belong that only the atomic forms have."""
    atomic = c.keyword.replace("matrix_", "matrix_atomic_")
    return f"'{atomic}' has it" if word in (*SCOPES, *SEMANTICS) else ""


def checked_flag(modifier: str | None) -> Checked | None:
    """`checked-flag = ".rows_checked" / ".cols_checked" / ".both_checked"`."""
    return next((flag for flag in CHECKED if flag == modifier), None)


_PREFIX: Final = "cooperative_matrix"
SPMD_FORMS: Final[Mapping[str, Form]] = {
    f"{_PREFIX}_apply": Form(cooperative_matrix_apply, "one"),
    f"{_PREFIX}_load": Form(partial(cooperative_matrix_load, atomic=False), "one"),
    f"{_PREFIX}_atomic_load": Form(partial(cooperative_matrix_load, atomic=True), "one"),
    f"{_PREFIX}_store": Form(partial(cooperative_matrix_store, atomic=False), "none"),
    f"{_PREFIX}_atomic_store": Form(partial(cooperative_matrix_store, atomic=True), "none"),
    **{f"{_PREFIX}_atomic_{op}": Form(partial(cooperative_matrix_atomic_update, op), "one") for op in UPDATE_OPS},
    f"{_PREFIX}_construct": Form(cooperative_matrix_construct, "one"),
    f"{_PREFIX}_extract": Form(cooperative_matrix_extract, "one"),
    f"{_PREFIX}_insert": Form(cooperative_matrix_insert, "one"),
    f"{_PREFIX}_mul_add": Form(cooperative_matrix_mul_add, "one"),
    f"{_PREFIX}_prefetch": Form(cooperative_matrix_prefetch, "none"),
    **{f"{_PREFIX}_reduce_{op}": Form(partial(cooperative_matrix_reduce, op), "one") for op in UPDATE_OPS},
    f"{_PREFIX}_scale": Form(cooperative_matrix_scale, "one"),
    "subgroup_broadcast": Form(subgroup_broadcast, "one"),
    **{f"subgroup_{kind}_{op}": Form(partial(subgroup_operation, kind, op), "one")
       for kind in _SCANS for op in UPDATE_OPS},
}  # fmt: skip
