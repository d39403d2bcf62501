"""Instructions that the work-items of a subgroup run side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tlx.frontends.tensor_language.syntax.ast.base import Instruction, Name, Region
from tlx.frontends.tensor_language.syntax.ast.collective import Transpose
from tlx.frontends.tensor_language.syntax.ast.mixed import Scope, Semantics, UpdateOp

Checked = Literal["rows_checked", "cols_checked", "both_checked"]
ScanKind = Literal["exclusive_scan", "inclusive_scan", "reduce"]
ReduceMode = Literal["row", "column"]


@dataclass(kw_only=True, slots=True)
class SubgroupBroadcast(Instruction):
    """`%r = subgroup_broadcast %value, %lane : type`."""

    value: Name
    lane: Name


@dataclass(kw_only=True, slots=True)
class SubgroupOperation(Instruction):
    """`%r = subgroup_inclusive_scan_add %value : type` and the like."""

    kind: ScanKind
    op: UpdateOp
    value: Name


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


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixLoad(MatrixAccess):
    """`%r = cooperative_matrix_load[.t|.n][.X_checked] %memref[%x,%y] : type`; atomic with scope and semantics."""

    source: Name
    atomic: bool = False
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixStore(MatrixAccess):
    """`cooperative_matrix_store[.t|.n][.X_checked] %matrix, %memref[%x,%y]`; atomic with scope and semantics."""

    matrix: Name
    target: Name
    atomic: bool = False
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixAtomicUpdate(MatrixAccess):
    """`%old = cooperative_matrix_atomic_add[...] %matrix, %memref[%x,%y] : type`."""

    op: UpdateOp
    matrix: Name
    target: Name
    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixConstruct(Instruction):
    """`%r = cooperative_matrix_construct %value : type`."""

    value: Name


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixExtract(Instruction):
    """`%r = cooperative_matrix_extract %matrix[index] : type`: a component of the work-item's vector."""

    matrix: Name
    index: int


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixInsert(Instruction):
    """`%r = cooperative_matrix_insert %value, %matrix[index] : type`."""

    value: Name
    matrix: Name
    index: int


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixMulAdd(Instruction):
    """`%d = cooperative_matrix_mul_add %a, %b, %c : type`: `D := A B + C`."""

    a: Name
    b: Name
    c: Name


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixPrefetch(Instruction):
    """`cooperative_matrix_prefetch level, %memref[%x,%y], rows, columns`."""

    level: int
    source: Name
    x: Name
    y: Name
    rows: int
    columns: int


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixReduce(Instruction):
    """`%r = cooperative_matrix_reduce_add.row %matrix : type`; `.row` gives M x 1, `.column` 1 x N."""

    op: UpdateOp
    mode: ReduceMode
    matrix: Name


@dataclass(kw_only=True, slots=True)
class CooperativeMatrixScale(Instruction):
    """`%r = cooperative_matrix_scale %scalar, %matrix : type`."""

    scalar: Name
    matrix: Name
