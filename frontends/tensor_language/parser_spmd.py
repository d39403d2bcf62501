"""Productions of SPMD instructions; the builtins are with the mixed ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, get_args

from tlx.frontends.tensor_language.ast.mixed import UpdateOp
from tlx.frontends.tensor_language.ast.spmd import (
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
from tlx.frontends.tensor_language.cursor import Cursor, Form
from tlx.frontends.tensor_language.parser_mixed import SCOPES, SEMANTICS, UPDATE_OPS, chosen
from tlx.frontends.tensor_language.parser_operands import (
    TRANSPOSE,
    bracketed_integer,
    modifiers,
    operand,
    operands,
    position,
    separator,
    transpose,
)
from tlx.frontends.tensor_language.parser_regions import region
from tlx.frontends.tensor_language.parser_types import coopmatrix_type, number_type, result_type, type_ref

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
FORMS: Final[Mapping[str, Form]] = {
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
