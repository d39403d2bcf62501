"""Methods for SPMD instructions, which the work-items of a subgroup run in lockstep."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from tlx.diagnostics import UsageError
from tlx.frontends.tensor_language.builder.core import UNWRITTEN, KernelBase, access_meanings, document, method
from tlx.frontends.tensor_language.builder.mixed import Results
from tlx.frontends.tensor_language.builder.values import Operand, TypeLike, Value
from tlx.frontends.tensor_language.operations import OPERATIONS
from tlx.frontends.tensor_language.operations.core import Scope, Semantics, Transpose
from tlx.frontends.tensor_language.operations.subgroups import (
    Checked,
    CooperativeMatrixApply,
    CooperativeMatrixConstruct,
    CooperativeMatrixExtract,
    CooperativeMatrixInsert,
    CooperativeMatrixMulAdd,
    CooperativeMatrixPrefetch,
    CooperativeMatrixScale,
    ReduceMode,
    SubgroupBroadcast,
)
from tlx.frontends.tensor_language.syntax.nodes import Name
from tlx.frontends.tensor_language.types import I32, INDEX, CoopMatrixType


@dataclass(eq=False, slots=True, kw_only=True, repr=False)
class Entry(Results):
    """The entry that the body of `cooperative_matrix_apply` works on.

    Attributes:
        row: Its row, an i32.
        column: Its column, an i32.
        value: Its value.
    """

    USE: ClassVar[str] = "write .value, .row or .column for what the block is given, .result after it"

    row: Value
    column: Value
    value: Value


_COLLECTIVE: Final = "or it is in a collective region"
_OF_ALL: Final = {"add": "sum", "max": "largest", "min": "smallest"}
_OF_TWO: Final = {"add": "sums", "max": "larger", "min": "smaller"}
_WORK_ITEMS: Final = {
    "exclusive_scan": "the work-items before",
    "inclusive_scan": "the work-items up to this one",
    "reduce": "all work-items of the subgroup",
}


def _combined(name: str) -> str:
    fixed = OPERATIONS[name].spellings[name]
    kind, op = fixed["kind"], fixed["op"]
    identity = "" if kind != "exclusive_scan" else "; before the first the identity"
    text = f"the {_OF_ALL[op]} of the values of {_WORK_ITEMS[kind]}{identity}."
    value = "A number." if op == "add" else "A number that is not complex."
    return document(text, {"value": value}, f"The value is not such a number, {_COLLECTIVE}.")


def _reduced(name: str) -> str:
    op = OPERATIONS[name].spellings[name]["op"]
    matrix = "A cooperative matrix, M x N, M a multiple of the subgroup size"
    return document(
        f"the {_OF_ALL[op]} of each row, M x 1, or of each column, 1 x N.",
        {"mode": "Which of them.", "matrix": f"{matrix}." if op == "add" else f"{matrix}, not complex."},
        f"M is not such a multiple, {_COLLECTIVE}.",
    )


_MATRIX: Final = "A cooperative matrix, M x N, with the memref's element type."
_MEMREF: Final = "A memref of order 2."
_PART: Final = {
    "x": "The row of the memref where the part begins, of type index; the same for the whole subgroup.",
    "y": "The column, as x.",
    "transpose": "Whether the matrix is transposed in the memref ('t') or not ('n').",
    "checked": "Whether rows, columns or both are bounds-checked; without it all must be in bounds.",
}
_ATOMIC: Final = {"atomic": "Whether each entry is accessed atomically; scope and semantics require it."}
_REFUSED: Final = f"Types or orders do not fit, a position differs between work-items, {_COLLECTIVE}."


def _entries_loaded(name: str) -> str:
    atomic = "`cooperative_matrix_atomic_load` if atomic.\n\nEntries out of checked bounds are 0."
    type_ = "Type of the matrix, M x N, with the memref's element type."
    meanings = {"type_": type_, "source": _MEMREF, **_PART, **_ATOMIC, **access_meanings(name)}
    return document(f"a part of a memref as a matrix; {atomic}", meanings, _REFUSED)


def _entries_stored(name: str) -> str:
    text = "writes a matrix to a part of a memref; `cooperative_matrix_atomic_store` if atomic."
    return document(
        text, {"matrix": _MATRIX, "destination": _MEMREF, **_PART, **_ATOMIC, **access_meanings(name)}, _REFUSED
    )


def _entries_updated(name: str) -> str:
    op = OPERATIONS[name].spellings[name]["op"]
    text = f"entries of a memref become the {_OF_TWO[op]} of them and those of a matrix; gives the old ones."
    return document(text, {"matrix": _MATRIX, "destination": _MEMREF, **_PART, **access_meanings(name)}, _REFUSED)


class Spmd(KernelBase):
    """SPMD instructions."""

    def _subgroup(self, name: str, value: Value) -> Value:
        return self._write_named(name, value=self._name(value))

    def _reduce(self, name: str, mode: ReduceMode, matrix: Value) -> Value:
        self._matrix(matrix)
        return self._write_named(name, mode=mode, matrix=self._name(matrix))

    def _load_entries(
        self, name: str, type_: TypeLike, source: Value, x: Operand, y: Operand, *, transpose: Transpose = "n",
        checked: Checked | None = None, atomic: bool = False, scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> Value:  # fmt: skip
        part = self._part(x, y, transpose, checked, scope, semantics)
        load = self._node(name, source=self._name(source), atomic=atomic, **part)
        return self._write_one(load, self._type(type_))

    def _store_entries(
        self, name: str, matrix: Value, destination: Value, x: Operand, y: Operand, *, transpose: Transpose = "n",
        checked: Checked | None = None, atomic: bool = False, scope: Scope = "work_group",
        semantics: Semantics = "relaxed",
    ) -> None:  # fmt: skip
        part = self._part(x, y, transpose, checked, scope, semantics)
        self._write(
            self._node(name, matrix=self._name(matrix), destination=self._name(destination), atomic=atomic, **part)
        )

    def _update_entries(
        self, name: str, matrix: Value, destination: Value, x: Operand, y: Operand, *, transpose: Transpose = "n",
        checked: Checked | None = None, scope: Scope = "work_group", semantics: Semantics = "relaxed",
    ) -> Value:  # fmt: skip
        part = self._part(x, y, transpose, checked, scope, semantics)
        self._matrix(matrix)
        return self._write_named(name, matrix=self._name(matrix), destination=self._name(destination), **part)

    def _part(self, x: Operand, y: Operand, *modifiers: str | None) -> dict[str, Any]:
        first, second = self._place_of(x, y)
        words = zip(("transpose", "checked", "scope", "semantics"), modifiers, strict=True)
        return {"x": first, "y": second, **dict(words)}

    subgroup_exclusive_scan_add = method(_subgroup, "subgroup_exclusive_scan_add", _combined)
    subgroup_exclusive_scan_max = method(_subgroup, "subgroup_exclusive_scan_max", _combined)
    subgroup_exclusive_scan_min = method(_subgroup, "subgroup_exclusive_scan_min", _combined)
    subgroup_inclusive_scan_add = method(_subgroup, "subgroup_inclusive_scan_add", _combined)
    subgroup_inclusive_scan_max = method(_subgroup, "subgroup_inclusive_scan_max", _combined)
    subgroup_inclusive_scan_min = method(_subgroup, "subgroup_inclusive_scan_min", _combined)
    subgroup_reduce_add = method(_subgroup, "subgroup_reduce_add", _combined)
    subgroup_reduce_max = method(_subgroup, "subgroup_reduce_max", _combined)
    subgroup_reduce_min = method(_subgroup, "subgroup_reduce_min", _combined)
    cooperative_matrix_reduce_add = method(_reduce, "cooperative_matrix_reduce_add", _reduced)
    cooperative_matrix_reduce_max = method(_reduce, "cooperative_matrix_reduce_max", _reduced)
    cooperative_matrix_reduce_min = method(_reduce, "cooperative_matrix_reduce_min", _reduced)
    cooperative_matrix_atomic_add = method(_update_entries, "cooperative_matrix_atomic_add", _entries_updated)
    cooperative_matrix_atomic_max = method(_update_entries, "cooperative_matrix_atomic_max", _entries_updated)
    cooperative_matrix_atomic_min = method(_update_entries, "cooperative_matrix_atomic_min", _entries_updated)

    def subgroup_broadcast(self, value: Value, lane: Operand) -> Value:
        """`subgroup_broadcast`: the value of one work-item, for all of the subgroup.

        Args:
            value: A number.
            lane: The work-item's number in the subgroup, an i32; the same for all of them.

        Raises:
            TlxError: The lane differs between work-items or is not in the subgroup, or it is in a collective
                region.
        """
        return self._write_one(SubgroupBroadcast(value=self._name(value), lane=self._operand(lane, I32)))

    @contextmanager
    def cooperative_matrix_apply(self, matrix: Value) -> Generator[Entry]:
        """`cooperative_matrix_apply`: the block yields the new value of an entry.

        with k.cooperative_matrix_apply(c) as entry:
            k.yield_(k.exp(entry.value))
        c = entry.result

        Args:
            matrix: A cooperative matrix; the result has its type.

        Raises:
            TlxError: The block does not yield one number of the component type, or it is in a collective
                region.
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

    cooperative_matrix_load = method(_load_entries, "cooperative_matrix_load", _entries_loaded)
    cooperative_matrix_store = method(_store_entries, "cooperative_matrix_store", _entries_stored)

    def cooperative_matrix_construct(self, value: Operand, type_: TypeLike) -> Value:
        """`cooperative_matrix_construct`: a matrix of equal entries.

        Args:
            value: A number of the component type, the same for the whole subgroup; a value or a Python number.
            type_: Type of the matrix.

        Raises:
            TlxError: The types do not fit, the value differs between work-items, or it is in a collective
                region.
        """
        matrix = self._type(type_)
        component = matrix.component if isinstance(matrix, CoopMatrixType) else None
        return self._write_one(CooperativeMatrixConstruct(value=self._operand(value, component)), matrix)

    def cooperative_matrix_extract(self, matrix: Value, index: int) -> Value:
        """`cooperative_matrix_extract`: a component of the work-item's part of a matrix.

        Args:
            matrix: A cooperative matrix.
            index: Number of the component, from 0, less than the number of components that a work-item holds.

        Raises:
            TlxError: There is no such component, or it is in a collective region.
        """
        extract = CooperativeMatrixExtract(matrix=self._name(matrix), index=index)
        self._matrix(matrix)
        return self._write_one(extract)

    def cooperative_matrix_insert(self, value: Operand, matrix: Value, index: int) -> Value:
        """`cooperative_matrix_insert`: the matrix with one component of the work-item's part replaced.

        Args:
            value: A number of the component type, a value or a Python number.
            matrix: A cooperative matrix.
            index: Number of the component, from 0, less than the number of components that a work-item holds.

        Raises:
            TlxError: There is no such component, the types do not fit, or it is in a collective region.
        """
        type_ = self._matrix(matrix)
        name = self._operand(value, type_.component)
        return self._write_one(CooperativeMatrixInsert(value=name, matrix=self._name(matrix), index=index))

    def cooperative_matrix_mul_add(self, a: Value, b: Value, c: Value, type_: TypeLike | None = None) -> Value:
        """`cooperative_matrix_mul_add`: A B + C, an M x N matrix.

        Args:
            a: A cooperative matrix of use matrix_a, M x K, M a multiple of the subgroup size.
            b: One of use matrix_b, K x N.
            c: One of use matrix_acc, M x N, whose type holds the products.
            type_: Type of the result, of use matrix_acc; C's by default.

        Raises:
            TlxError: A use, a shape or a type does not fit, or it is in a collective region.
        """
        product = CooperativeMatrixMulAdd(a=self._name(a), b=self._name(b), c=self._name(c))
        return self._write_one(product, self._matrix(c) if type_ is None else self._type(type_))

    def cooperative_matrix_prefetch(
        self, level: int, source: Value, x: Operand, y: Operand, rows: int, columns: int
    ) -> None:
        """`cooperative_matrix_prefetch`: brings a part of a memref into a cache.

        Args:
            level: The cache level; 0 is the one closest to the processor.
            source: A memref of order 2.
            x: The row of the memref where the part begins, of type index; the same for the whole subgroup.
            y: The column, as x.
            rows: Rows of the part, at least 1.
            columns: Columns of the part, at least 1.

        Raises:
            TlxError: A number is too small, a position differs between work-items, or it is in a collective
                region.
        """
        first, second = self._place_of(x, y)
        name = self._name(source)
        self._write(CooperativeMatrixPrefetch(level=level, source=name, x=first, y=second, rows=rows, columns=columns))

    def cooperative_matrix_scale(self, scalar: Operand, matrix: Value) -> Value:
        """`cooperative_matrix_scale`: the matrix with each entry multiplied by a number.

        Args:
            scalar: A number of the component type, a value or a Python number.
            matrix: A cooperative matrix.

        Raises:
            TlxError: The types do not fit, or it is in a collective region.
        """
        type_ = self._matrix(matrix)
        name = self._operand(scalar, type_.component)
        return self._write_one(CooperativeMatrixScale(scalar=name, matrix=self._name(matrix)))

    def _place_of(self, x: Operand, y: Operand) -> tuple[Name, Name]:
        return self._operand(x, INDEX), self._operand(y, INDEX)

    def _matrix(self, value: Value) -> CoopMatrixType:
        type_ = self._checked(value).type
        if not isinstance(type_, CoopMatrixType):
            raise UsageError(f"expected a cooperative matrix, got {value!r}", self.here())
        return type_
