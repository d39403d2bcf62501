"""Operations on cooperative matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tlx.frontends.tensor_language.operations.core import (
    MEMORY,
    UPDATES,
    Modifier,
    Scope,
    Semantics,
    Transpose,
    UpdateOp,
    operation,
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
from tlx.frontends.tensor_language.syntax.parser_types import coopmatrix_type, number_type

Checked = Literal["rows_checked", "cols_checked", "both_checked"]
ReduceMode = Literal["row", "column"]


def _scope_hint(c: Cursor, word: str) -> str:
    """Where modifiers belong that only the atomic accesses have."""
    atomic = c.keyword.replace("matrix_", "matrix_atomic_")
    return f"'{atomic}' has it" if any(word in slot.words for slot in MEMORY) else ""


_ACCESS: Final = (transpose(), Modifier("checked", get_args(Checked), None))
_ATOMIC_ACCESS: Final = (*_ACCESS, *MEMORY)
_MATRIX: Final = operand("matrix", "the matrix")
_INDEX: Final = bracketed("index", "the component's number")
_READ: Final = (operand("source", "the memref"), *position(), result(coopmatrix_type))
_WRITE: Final = (*operands(matrix="the matrix", target="the memref"), *position())


@operation(
    "cooperative_matrix_apply", mark("(", "and the names of row, column and value"),
    *operands(row="the name of the row", column="the name of the column", value_name="the name of the value"),
    mark(")", "behind the names of row, column and value"), mark("=", "and the matrix"), _MATRIX,
    arrow(coopmatrix_type), body(), region="spmd",
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
class MatrixAccess(Instruction):
    """Base of what reads or writes a matrix at `%memref[%x,%y]`.

    Attributes:
        transpose: Whether rows lie along the second mode of the memref.
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
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"


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
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"


@operation(
    spelt("cooperative_matrix_atomic_{op}", op=UPDATES), *_WRITE, result(coopmatrix_type), modifiers=_ATOMIC_ACCESS,
    writes="target", region="spmd",
)  # fmt: skip
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixAtomicUpdate(MatrixAccess):
    """`%old = cooperative_matrix_atomic_add[...] %matrix, %memref[%x,%y] : type`."""

    op: UpdateOp
    matrix: Name
    target: Name
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"


@operation("cooperative_matrix_construct", operand("value", "the value"), result(coopmatrix_type), region="spmd")
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixConstruct(Instruction):
    """`%r = cooperative_matrix_construct %value : type`."""

    value: Name


@operation("cooperative_matrix_extract", _MATRIX, _INDEX, result(number_type), region="spmd")
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixExtract(Instruction):
    """`%r = cooperative_matrix_extract %matrix[index] : type`: a component of the work-item's vector."""

    matrix: Name
    index: int


@operation(
    "cooperative_matrix_insert", *operands(value="the value", matrix="the matrix"), _INDEX, result(coopmatrix_type),
    region="spmd",
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
    modifiers=(Modifier("mode", get_args(ReduceMode), "row", is_required=True),), region="spmd",
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
)
@dataclass(kw_only=True, slots=True)
class CooperativeMatrixScale(Instruction):
    """`%r = cooperative_matrix_scale %scalar, %matrix : type`."""

    scalar: Name
    matrix: Name
