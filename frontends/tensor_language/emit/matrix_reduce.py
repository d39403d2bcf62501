"""Sums, maxima and minima of the rows or columns of a cooperative matrix.

    .row      r_i = x_i0 + x_i1 + ...     M x 1
    .column   r_j = x_0j + x_1j + ...     1 x N

Lines are added up as vectors: of the columns for `.row`, of the rows for `.column`. Narrow floats are rounded once.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.spmd import CooperativeMatrixReduce
from tlx.frontends.tensor_language.emit import arithmetic
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.matrices import matrix_type, rounded
from tlx.frontends.tensor_language.emit.matrix_buffer import read, spilled
from tlx.frontends.tensor_language.types import F32


def reduce(e: Emitter, i: CooperativeMatrixReduce) -> None:
    """`%r = cooperative_matrix_reduce_add.row %matrix : type`."""
    matrix = e.matrix(i.matrix)
    component = matrix.type.component
    computed = F32 if component.is_narrow_float else component
    buffer = spilled(e, matrix, by_rows=i.mode == "column")
    total = list(read(e, buffer, 0, buffer.length))
    if buffer.lines > 1:
        with e.b.loop(1, buffer.lines, carry=total, name="line") as loop:
            line = read(e, buffer, e.b.mul(loop.index, buffer.length), buffer.length)
            loop.next(*arithmetic.binary(e, i.op, computed, tuple(loop.carried), line))
        total = loop.results
    e.bind(i.result, rounded(e, matrix_type(i), tuple(total)))


RULES: Final = {CooperativeMatrixReduce: reduce}
