"""`llvm.matrix.*`: matrices as flattened vectors, column by column."""

from __future__ import annotations

from typing import Final

import numpy as np

from tlx.evaluate.elements import vector_type
from tlx.evaluate.rounding import to_float
from tlx.evaluate.site import CallSite, Run, Table, plain
from tlx.evaluate.values import Array, dtype_of
from tlx.ir.types import FloatType


def _multiply(site: CallSite) -> Run:
    """R x K times K x C; floats are summed in double and rounded once."""
    element = vector_type(site.result).element
    dtype = dtype_of(element)
    wide = np.dtype(np.float64) if isinstance(element, FloatType) else dtype

    def run(a: Array, b: Array, rows: int, inner: int, columns: int) -> Array:
        left = a.reshape(inner, rows).T.astype(wide)
        right = b.reshape(columns, inner).T.astype(wide)
        return to_float((left @ right).T.reshape(-1), dtype)

    return run


def _transpose(a: Array, rows: int, columns: int) -> Array:
    return a.reshape(columns, rows).T.reshape(-1).copy()


def _load(site: CallSite) -> Run:
    dtype, memory = dtype_of(vector_type(site.result).element), site.context.memory

    def run(address: int, stride: int, _volatile: int, rows: int, columns: int) -> Array:
        size = dtype.itemsize
        parts = [memory.read(address + c * stride * size, rows * size, "matrix load") for c in range(columns)]
        return np.frombuffer(b"".join(parts), dtype).copy()

    return run


def _store(site: CallSite) -> Run:
    memory = site.context.memory

    def run(value: Array, address: int, stride: int, _volatile: int, rows: int, columns: int) -> None:
        for c, column in enumerate(value.reshape(columns, rows)):
            memory.write(address + c * stride * value.itemsize, column.tobytes(), "matrix store")

    return run


MATRICES: Final[Table] = {
    "matrix.multiply": _multiply,
    "matrix.transpose": plain(_transpose),
    "matrix.column.major.load": _load,
    "matrix.column.major.store": _store,
    "matrix.columnwise.load": _load,
    "matrix.columnwise.store": _store,
}
