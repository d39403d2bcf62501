"""Methods that write the instructions that the work-items of a subgroup run side by side."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.ast.base import Name
from tlx.frontends.tensor_language.ast.collective import Transpose
from tlx.frontends.tensor_language.ast.mixed import Scope, Semantics, UpdateOp
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
from tlx.frontends.tensor_language.builder_control import Results
from tlx.frontends.tensor_language.builder_core import UNWRITTEN, Core
from tlx.frontends.tensor_language.builder_types import TypeLike
from tlx.frontends.tensor_language.builder_values import Operand, Value
from tlx.frontends.tensor_language.types import I32, INDEX, CoopMatrixType


@dataclass(eq=False, slots=True, kw_only=True, repr=False)
class Entry(Results):
    """The entry that the body of `cooperative_matrix_apply` works on.

    Attributes:
        row: Its row, an i32.
        column: Its column, an i32.
        value: Its value.
    """

    USE: ClassVar[str] = "write .value, .row or .column for what the block is given, .result behind it"

    row: Value
    column: Value
    value: Value


class Spmd(Core):
    """SPMD instructions."""

    def subgroup_exclusive_scan_add(self, value: Value) -> Value:
        """`subgroup_exclusive_scan_add`: the sum of the values of the work-items before."""
        return self._subgroup("exclusive_scan", "add", value)

    def subgroup_exclusive_scan_max(self, value: Value) -> Value:
        """`subgroup_exclusive_scan_max`: the largest of the values of the work-items before."""
        return self._subgroup("exclusive_scan", "max", value)

    def subgroup_exclusive_scan_min(self, value: Value) -> Value:
        """`subgroup_exclusive_scan_min`: the smallest of the values of the work-items before."""
        return self._subgroup("exclusive_scan", "min", value)

    def subgroup_inclusive_scan_add(self, value: Value) -> Value:
        """`subgroup_inclusive_scan_add`: the sum of the values up to the work-item."""
        return self._subgroup("inclusive_scan", "add", value)

    def subgroup_inclusive_scan_max(self, value: Value) -> Value:
        """`subgroup_inclusive_scan_max`: the largest of the values up to the work-item."""
        return self._subgroup("inclusive_scan", "max", value)

    def subgroup_inclusive_scan_min(self, value: Value) -> Value:
        """`subgroup_inclusive_scan_min`: the smallest of the values up to the work-item."""
        return self._subgroup("inclusive_scan", "min", value)

    def subgroup_reduce_add(self, value: Value) -> Value:
        """`subgroup_reduce_add`: the sum of the values of all work-items."""
        return self._subgroup("reduce", "add", value)

    def subgroup_reduce_max(self, value: Value) -> Value:
        """`subgroup_reduce_max`: the largest of the values of all work-items."""
        return self._subgroup("reduce", "max", value)

    def subgroup_reduce_min(self, value: Value) -> Value:
        """`subgroup_reduce_min`: the smallest of the values of all work-items."""
        return self._subgroup("reduce", "min", value)

    def cooperative_matrix_reduce_add(self, mode: ReduceMode, matrix: Value) -> Value:
        """`cooperative_matrix_reduce_add`: the sum of each "row" (M x 1) or of each "column" (1 x N)."""
        return self._reduced("add", mode, matrix)

    def cooperative_matrix_reduce_max(self, mode: ReduceMode, matrix: Value) -> Value:
        """`cooperative_matrix_reduce_max`: the largest of each "row" (M x 1) or of each "column" (1 x N)."""
        return self._reduced("max", mode, matrix)

    def cooperative_matrix_reduce_min(self, mode: ReduceMode, matrix: Value) -> Value:
        """`cooperative_matrix_reduce_min`: the smallest of each "row" (M x 1) or of each "column" (1 x N)."""
        return self._reduced("min", mode, matrix)

    def cooperative_matrix_atomic_add(
        self,
        matrix: Value,
        target: Value,
        x: Operand,
        y: Operand,
        *,
        transpose: Transpose = "n",
        checked: Checked | None = None,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        """`cooperative_matrix_atomic_add`: entries of a memref become the sum of them and those of a matrix."""
        place = self._place_of(x, y)
        return self._update_entries("add", matrix, target, place, transpose, checked, scope, semantics)

    def cooperative_matrix_atomic_max(
        self,
        matrix: Value,
        target: Value,
        x: Operand,
        y: Operand,
        *,
        transpose: Transpose = "n",
        checked: Checked | None = None,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        """`cooperative_matrix_atomic_max`: entries of a memref become the larger of them and those of a matrix."""
        place = self._place_of(x, y)
        return self._update_entries("max", matrix, target, place, transpose, checked, scope, semantics)

    def cooperative_matrix_atomic_min(
        self,
        matrix: Value,
        target: Value,
        x: Operand,
        y: Operand,
        *,
        transpose: Transpose = "n",
        checked: Checked | None = None,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        """`cooperative_matrix_atomic_min`: entries of a memref become the smaller of them and those of a matrix."""
        place = self._place_of(x, y)
        return self._update_entries("min", matrix, target, place, transpose, checked, scope, semantics)

    def subgroup_broadcast(self, value: Value, lane: Operand) -> Value:
        """`subgroup_broadcast`: the value of one work-item, for all of the subgroup."""
        broadcast = SubgroupBroadcast(value=self._name(value), lane=self._operand(lane, I32))
        return self._write_one(broadcast, value.type)

    @contextmanager
    def cooperative_matrix_apply(self, matrix: Value) -> Generator[Entry]:
        """`cooperative_matrix_apply`: the block yields what becomes of an entry.

        with k.cooperative_matrix_apply(c) as entry:
            k.yield_(k.exp(entry.value))
        c = entry.result
        """
        span = self.here()
        type_ = self._matrix(matrix)
        name = self._name(matrix)
        with self._region((type_.component,)) as frame:
            row, column = self._value(I32), self._value(I32)
            entry = Entry(row=row, column=column, value=self._value(type_.component))
            written = CooperativeMatrixApply(
                row=row.name, column=column.name, value_name=entry.value.name, matrix=name, body=UNWRITTEN
            )
            self._check(written, (type_,), span)
            yield entry
        written.body = frame.region
        entry.values.extend(self._add(written, (type_,), span))

    def cooperative_matrix_load(
        self,
        type_: TypeLike,
        source: Value,
        x: Operand,
        y: Operand,
        *,
        transpose: Transpose = "n",
        checked: Checked | None = None,
        atomic: bool = False,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:
        """`cooperative_matrix_load`, or `cooperative_matrix_atomic_load`: a matrix of that type from a memref."""
        place = self._place_of(x, y)
        load = CooperativeMatrixLoad(
            source=self._name(source),
            x=place[0],
            y=place[1],
            transpose=transpose,
            checked=checked,
            atomic=atomic,
            scope=scope,
            semantics=semantics,
        )
        return self._write_one(load, self._type(type_))

    def cooperative_matrix_store(
        self,
        matrix: Value,
        target: Value,
        x: Operand,
        y: Operand,
        *,
        transpose: Transpose = "n",
        checked: Checked | None = None,
        atomic: bool = False,
        scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> None:
        """`cooperative_matrix_store`, or `cooperative_matrix_atomic_store`: a matrix into a part of a memref."""
        place = self._place_of(x, y)
        self._write(
            CooperativeMatrixStore(
                matrix=self._name(matrix),
                target=self._name(target),
                x=place[0],
                y=place[1],
                transpose=transpose,
                checked=checked,
                atomic=atomic,
                scope=scope,
                semantics=semantics,
            )
        )

    def cooperative_matrix_construct(self, value: Operand, type_: TypeLike) -> Value:
        """`cooperative_matrix_construct`: a matrix of equal entries."""
        matrix = self._type(type_)
        component = matrix.component if isinstance(matrix, CoopMatrixType) else None
        return self._write_one(CooperativeMatrixConstruct(value=self._operand(value, component)), matrix)

    def cooperative_matrix_extract(self, matrix: Value, index: int) -> Value:
        """`cooperative_matrix_extract`: a component of the work-item's part of a matrix."""
        extract = CooperativeMatrixExtract(matrix=self._name(matrix), index=index)
        return self._write_one(extract, self._matrix(matrix).component)

    def cooperative_matrix_insert(self, value: Operand, matrix: Value, index: int) -> Value:
        """`cooperative_matrix_insert`: the matrix with another component in the work-item's part."""
        type_ = self._matrix(matrix)
        name = self._operand(value, type_.component)
        return self._write_one(CooperativeMatrixInsert(value=name, matrix=self._name(matrix), index=index), type_)

    def cooperative_matrix_mul_add(self, a: Value, b: Value, c: Value, type_: TypeLike | None = None) -> Value:
        """`cooperative_matrix_mul_add`: A B + C, of C's type where none is given."""
        product = CooperativeMatrixMulAdd(a=self._name(a), b=self._name(b), c=self._name(c))
        return self._write_one(product, self._matrix(c) if type_ is None else self._type(type_))

    def cooperative_matrix_prefetch(
        self, level: int, source: Value, x: Operand, y: Operand, rows: int, columns: int
    ) -> None:
        """`cooperative_matrix_prefetch`: a part of a memref into a cache."""
        first, second = self._place_of(x, y)
        name = self._name(source)
        self._write(CooperativeMatrixPrefetch(level=level, source=name, x=first, y=second, rows=rows, columns=columns))

    def cooperative_matrix_scale(self, scalar: Operand, matrix: Value) -> Value:
        """`cooperative_matrix_scale`: a matrix with each entry multiplied."""
        type_ = self._matrix(matrix)
        name = self._operand(scalar, type_.component)
        return self._write_one(CooperativeMatrixScale(scalar=name, matrix=self._name(matrix)), type_)

    def _subgroup(self, kind: ScanKind, op: UpdateOp, value: Value) -> Value:
        return self._write_one(SubgroupOperation(kind=kind, op=op, value=self._name(value)), value.type)

    def _reduced(self, op: UpdateOp, mode: ReduceMode, matrix: Value) -> Value:
        type_ = self._matrix(matrix)
        reduce = CooperativeMatrixReduce(op=op, mode=mode, matrix=self._name(matrix))
        return self._write_one(reduce, type_.reduced(mode))

    def _update_entries(
        self,
        op: UpdateOp,
        matrix: Value,
        target: Value,
        place: tuple[Name, Name],
        transpose: Transpose,
        checked: Checked | None,
        scope: Scope,
        semantics: Semantics,
    ) -> Value:
        update = CooperativeMatrixAtomicUpdate(
            op=op,
            matrix=self._name(matrix),
            target=self._name(target),
            x=place[0],
            y=place[1],
            transpose=transpose,
            checked=checked,
            scope=scope,
            semantics=semantics,
        )
        return self._write_one(update, self._matrix(matrix))

    def _place_of(self, x: Operand, y: Operand) -> tuple[Name, Name]:
        return self._operand(x, INDEX), self._operand(y, INDEX)

    def _matrix(self, value: Value) -> CoopMatrixType:
        type_ = self._checked(value).type
        if not isinstance(type_, CoopMatrixType):
            raise UsageError(f"expected a cooperative matrix, got {value!r}", self.here())
        return type_
