"""Operations of subgroups: builtins, scans, reductions, broadcasts, and cooperative matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tlx.frontends.tensor_language.operations.core import (
    MEMORY,
    UPDATES,
    Modifier,
    Ordered,
    Transpose,
    TypeOf,
    UpdateOp,
    always,
    element_of,
    operation,
    same_as,
    spelt,
    transpose,
)
from tlx.frontends.tensor_language.syntax.cursor import Cursor
from tlx.frontends.tensor_language.syntax.forms import (
    arrow,
    body,
    bracketed,
    comma,
    integer,
    mark,
    operand,
    operands,
    position,
    result,
)
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name, Region
from tlx.frontends.tensor_language.syntax.productions import coopmatrix_type, integer_type, number_type
from tlx.frontends.tensor_language.types import I32, INDEX, CoopMatrixType, Type

BuiltinName = Literal[
    "group_id", "num_groups", "num_subgroups", "subgroup_size",
    "subgroup_id", "subgroup_linear_id", "subgroup_local_id",
]  # fmt: skip
Component = Literal["x", "y", "z"]
ScanKind = Literal["exclusive_scan", "inclusive_scan", "reduce"]

_COMPONENT: Final = Modifier("component", get_args(Component), None, is_required=True, is_named=True)
_TYPE: Final = result(integer_type)


@operation(
    spelt("{name}", name=("subgroup_linear_id", "subgroup_local_id")), _TYPE, modifiers=(), region="spmd",
    gives=always(I32),
)  # fmt: skip
@operation(spelt("{name}", name=("subgroup_id",)), _TYPE, modifiers=(_COMPONENT,), region="spmd", gives=always(I32))
@operation(spelt("{name}", name=("subgroup_size",)), _TYPE, modifiers=(), gives=always(I32))
@operation(spelt("{name}", name=("num_subgroups",)), _TYPE, modifiers=(_COMPONENT,), gives=always(I32))
@operation(spelt("{name}", name=("group_id", "num_groups")), _TYPE, modifiers=(_COMPONENT,), gives=always(INDEX))
@dataclass(kw_only=True, slots=True)
class Builtin(Instruction):
    """`%r = group_id.x : index` and the like; the `subgroup_id`s exist in SPMD regions only."""

    name: BuiltinName
    component: Component | None = None


@operation(
    "subgroup_broadcast", *operands(value="the value", lane="the work-item's number"), result(number_type),
    region="spmd", gives=same_as("value"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class SubgroupBroadcast(Instruction):
    """`%r = subgroup_broadcast %value, %lane : type`."""

    value: Name
    lane: Name


@operation(
    spelt("subgroup_{kind}_{op}", kind=get_args(ScanKind), op=UPDATES), operand("value", "the value"),
    result(number_type), region="spmd", gives=same_as("value"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class SubgroupOperation(Instruction):
    """`%r = subgroup_inclusive_scan_add %value : type` and the like."""

    kind: ScanKind
    op: UpdateOp
    value: Name


Checked = Literal["rows_checked", "cols_checked", "both_checked"]
ReduceMode = Literal["row", "column"]


def _scope_hint(c: Cursor, word: str) -> str:
    """A hint that a modifier belongs to the atomic form."""
    atomic = c.keyword.replace("matrix_", "matrix_atomic_")
    return f"'{atomic}' has it" if any(word in slot.words for slot in MEMORY) else ""


_ACCESS: Final = (transpose(), Modifier("checked", get_args(Checked), None))
_ATOMIC_ACCESS: Final = (*_ACCESS, *MEMORY)
_MATRIX: Final = operand("matrix", "the matrix")
_INDEX: Final = bracketed("index", "the component's number")
_READ: Final = (operand("source", "the memref"), *position(), result(coopmatrix_type))
_WRITE: Final = (*operands(matrix="the matrix", target="the memref"), *position())


def _type_of_reduce(node: CooperativeMatrixReduce, type_of: TypeOf) -> Type | None:
    type_ = type_of(node.matrix)
    return type_.reduced(node.mode) if isinstance(type_, CoopMatrixType) else None


@operation(
    "cooperative_matrix_apply", mark("(", "and the names of row, column and value"),
    *operands(row="the name of the row", column="the name of the column", value_name="the name of the value"),
    mark(")", "after the names of row, column and value"), mark("=", "and the matrix"), _MATRIX,
    arrow(coopmatrix_type), body(), region="spmd", gives=same_as("matrix"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixApply(Instruction):
    """`%r = cooperative_matrix_apply (%row,%column,%value)=%matrix -> type { ... }`."""

    row: Name
    column: Name
    value_name: Name
    matrix: Name
    body: Region


@dataclass(kw_only=True, slots=True)
class MatrixAccess(Ordered):
    """Base of what reads or writes a matrix at `%memref[%x,%y]`.

    Attributes:
        transpose: Whether rows of the matrix run along the second mode of the memref.
        checked: Which bounds are checked, None for none.
    """

    transpose: Transpose = "n"
    checked: Checked | None = None
    x: Name
    y: Name


@operation(spelt("cooperative_matrix_atomic_load", atomic=(True,)), *_READ, modifiers=_ATOMIC_ACCESS, region="spmd")
@operation(
    spelt("cooperative_matrix_load", atomic=(False,)), *_READ, modifiers=_ACCESS, hint=_scope_hint, region="spmd"
)
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixLoad(MatrixAccess):
    """`%r = cooperative_matrix_load[.t|.n][.X_checked] %memref[%x,%y] : type`; atomic with scope and semantics."""

    source: Name
    atomic: bool = False


@operation(
    spelt("cooperative_matrix_atomic_store", atomic=(True,)), *_WRITE, modifiers=_ATOMIC_ACCESS, results="none",
    writes="target", region="spmd",
)  # fmt: skip
@operation(
    spelt("cooperative_matrix_store", atomic=(False,)), *_WRITE, modifiers=_ACCESS, hint=_scope_hint, results="none",
    writes="target", region="spmd",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixStore(MatrixAccess):
    """`cooperative_matrix_store[.t|.n][.X_checked] %matrix, %memref[%x,%y]`; atomic with scope and semantics."""

    matrix: Name
    target: Name
    atomic: bool = False


@operation(
    spelt("cooperative_matrix_atomic_{op}", op=UPDATES), *_WRITE, result(coopmatrix_type), modifiers=_ATOMIC_ACCESS,
    writes="target", region="spmd", gives=same_as("matrix"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixAtomicUpdate(MatrixAccess):
    """`%old = cooperative_matrix_atomic_add[...] %matrix, %memref[%x,%y] : type`."""

    op: UpdateOp
    matrix: Name
    target: Name


@operation("cooperative_matrix_construct", operand("value", "the value"), result(coopmatrix_type), region="spmd")
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixConstruct(Instruction):
    """`%r = cooperative_matrix_construct %value : type`."""

    value: Name


@operation(
    "cooperative_matrix_extract", _MATRIX, _INDEX, result(number_type), region="spmd", gives=element_of("matrix")
)
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixExtract(Instruction):
    """`%r = cooperative_matrix_extract %matrix[index] : type`: a component of the work-item's vector."""

    matrix: Name
    index: int


@operation(
    "cooperative_matrix_insert", *operands(value="the value", matrix="the matrix"), _INDEX, result(coopmatrix_type),
    region="spmd", gives=same_as("matrix"),
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixInsert(Instruction):
    """`%r = cooperative_matrix_insert %value, %matrix[index] : type`."""

    value: Name
    matrix: Name
    index: int


@operation("cooperative_matrix_mul_add", *operands(a="A", b="B", c="C"), result(coopmatrix_type), region="spmd")
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixMulAdd(Instruction):
    """`%d = cooperative_matrix_mul_add %a, %b, %c : type`: `D := A B + C`."""

    a: Name
    b: Name
    c: Name


@operation(
    "cooperative_matrix_prefetch", integer("level", "the cache level"), comma("the memref"),
    operand("source", "the memref"), *position(), comma("the number of rows"), integer("rows", "the number of rows"),
    comma("the number of columns"), integer("columns", "the number of columns"), results="none", region="spmd",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixPrefetch(Instruction):
    """`cooperative_matrix_prefetch level, %memref[%x,%y], rows, columns`."""

    level: int
    source: Name
    x: Name
    y: Name
    rows: int
    columns: int


@operation(
    spelt("cooperative_matrix_reduce_{op}", op=UPDATES), _MATRIX, result(coopmatrix_type),
    modifiers=(Modifier("mode", get_args(ReduceMode), "row", is_required=True),), region="spmd", gives=_type_of_reduce,
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixReduce(Instruction):
    """`%r = cooperative_matrix_reduce_add.row %matrix : type`; `.row` gives M x 1, `.column` 1 x N."""

    op: UpdateOp
    mode: ReduceMode
    matrix: Name


@operation(
    "cooperative_matrix_scale",
    *operands(scalar="the scalar", matrix="the matrix"),
    result(coopmatrix_type),
    region="spmd",
    gives=same_as("matrix"),
)
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixScale(Instruction):
    """`%r = cooperative_matrix_scale %scalar, %matrix : type`."""

    scalar: Name
    matrix: Name
