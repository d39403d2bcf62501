"""Work-item vectors of cooperative matrices: apply, extract, insert.

An M x N matrix in a subgroup of S is cut into chunks of S entries; component v of work-item p is entry p of chunk v.
Chunks hold neighbours of a column, and where columns are shorter than S they go on in the next one:

    M <= S    chunk v begins at entry v S of the matrix, column by column
    M >  S    blocks of S rows, one below the other (`matrix_b` of small types: K1 = 2 / size of them side by side):
              v = k1 + K1 (j + N k2)  ->  column j, first row S (k1 + K1 k2)

So a chunk is S adjacent entries of a buffer; the last one may reach beyond the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.matrices.representation import (
    Buffer,
    new_buffer,
    read_entries,
    reload,
    spill,
    write_entries,
)
from tlx.frontends.tensor_language.emit.numbers import lane_ids, vary
from tlx.frontends.tensor_language.emit.values import Number
from tlx.frontends.tensor_language.operations.matrices import (
    CooperativeMatrixApply,
    CooperativeMatrixExtract,
    CooperativeMatrixInsert,
)
from tlx.frontends.tensor_language.types import I32 as LANGUAGE_I32
from tlx.frontends.tensor_language.types import CoopMatrixType
from tlx.ir.types import I32, I64
from tlx.ir.values import Value, const_int, const_ints


@dataclass(frozen=True, slots=True)
class WorkItemLayout:
    """How the entries of a matrix are spread over the work-items of a subgroup.

    Attributes:
        type: Type of the matrix.
        subgroup_size: Work-items.
    """

    type: CoopMatrixType
    subgroup_size: int

    @property
    def components(self) -> int:
        """Length of a work-item's vector."""
        return -(-self.type.rows * self.type.columns // self.subgroup_size)

    @property
    def is_linear(self) -> bool:
        """Whether chunks follow one another through the columns."""
        return self.type.rows <= self.subgroup_size

    @property
    def is_full(self) -> bool:
        """Whether every chunk is all entries of the matrix."""
        return self.type.rows * self.type.columns % self.subgroup_size == 0

    @property
    def side_by_side(self) -> int:
        """`K1`: neighbouring blocks of rows that alternate."""
        blocks = self.type.rows // self.subgroup_size
        wanted = max(1, 2 // self.type.component.size) if self.type.use == "matrix_b" else 1
        return wanted if not self.is_linear and blocks % wanted == 0 else 1

    def place(self, component: int) -> tuple[int, int]:
        """Row and column of the first entry of a chunk."""
        if self.is_linear:
            column, row = divmod(component * self.subgroup_size, self.type.rows)
            return row, column
        rest, k1 = divmod(component, self.side_by_side)
        k2, column = divmod(rest, self.type.columns)
        return (k1 + k2 * self.side_by_side) * self.subgroup_size, column

    def offset(self, component: int) -> int:
        """Position of a chunk's first entry in the flattened matrix."""
        row, column = self.place(component)
        return row + column * self.type.rows


def extract(e: Emitter, i: CooperativeMatrixExtract) -> None:
    """`%r = cooperative_matrix_extract %matrix[index] : type`."""
    matrix = e.matrix(i.matrix)
    layout = WorkItemLayout(matrix.type, e.lanes)
    parts = read_entries(e, spill(e, matrix), layout.offset(i.index), e.lanes)
    e.bind(i.result, Number(matrix.type.component, parts))


def insert(e: Emitter, i: CooperativeMatrixInsert) -> None:
    """`%r = cooperative_matrix_insert %value, %matrix[index] : type`."""
    matrix = e.matrix(i.matrix)
    layout = WorkItemLayout(matrix.type, e.lanes)
    buffer = spill(e, matrix)
    write_entries(e, buffer, layout.offset(i.index), vary(e, e.number(i.value)).parts)
    e.bind(i.result, reload(e, buffer))


def apply(e: Emitter, i: CooperativeMatrixApply) -> None:
    """`%r = cooperative_matrix_apply (%row,%column,%value)=%matrix -> type { ... }`: the region for each chunk."""
    matrix = e.matrix(i.matrix)
    layout = WorkItemLayout(matrix.type, e.lanes)
    source, target = spill(e, matrix), new_buffer(e, matrix.type)
    with e.b.loop(0, layout.components, name="component") as component:
        _chunk(e, i, layout, (source, target), component.index)
    e.bind(i.result, reload(e, target))


def _chunk(
    e: Emitter, i: CooperativeMatrixApply, layout: WorkItemLayout, buffers: tuple[Buffer, Buffer], component: Value
) -> None:
    """Run the region of `apply` on one chunk."""
    source, target = buffers
    row, column, offset, mask = _positions(e, layout, component)
    with e.masked(mask), e.region():
        e.bind(i.row, Number(LANGUAGE_I32, (row,)))
        e.bind(i.column, Number(LANGUAGE_I32, (column,)))
        e.bind(i.value_name, Number(layout.type.component, read_entries(e, source, offset, e.lanes)))
        (value,) = e.instructions(i.body.instructions)
        assert isinstance(value, Number)
        write_entries(e, target, offset, vary(e, value).parts)


def _positions(e: Emitter, layout: WorkItemLayout, component: Value) -> tuple[Value, Value, Value, Value | None]:
    """Row and column of each lane's entry (i32), the chunk's offset (i64), and which lanes have an entry."""
    b, rows, lanes = e.b, layout.type.rows, e.lanes
    ids = lane_ids(e)
    if layout.is_linear:
        offset = b.mul(component, lanes)
        entries = b.add(b.splat(b.cast("trunc", offset, I32), lanes), ids)
        height = const_ints(I32, [rows] * lanes)
        full = layout.is_full
        mask = None if full else b.icmp("ult", entries, rows * layout.type.columns)
        return b.binary("urem", entries, height), b.binary("udiv", entries, height), offset, mask
    width, k = layout.type.columns, layout.side_by_side
    k1 = b.binary("urem", component, const_int(I64, k))
    rest = b.binary("udiv", component, const_int(I64, k))
    column = b.binary("urem", rest, const_int(I64, width))
    block = b.add(k1, b.mul(b.binary("udiv", rest, const_int(I64, width)), k))
    first = b.mul(block, lanes)
    row = b.add(b.splat(b.cast("trunc", first, I32), lanes), ids)
    return row, b.splat(b.cast("trunc", column, I32), lanes), b.add(first, b.mul(column, rows)), None


RULES: Final = {
    CooperativeMatrixExtract: extract,
    CooperativeMatrixInsert: insert,
    CooperativeMatrixApply: apply,
}
