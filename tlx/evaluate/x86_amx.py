"""Intel AMX: tiles of up to 16 rows of 64 bytes (Intel SDM volume 2, TDPBSSD, TDPBF16PS, TILELOADD).

A tile value is always 16 x 64 bytes; what lies outside the rows and column bytes of the operation that made it is
zero. B of a product is in VNNI order: q = 4 (i8) or 2 (bf16, f16) elements of one column lie side by side,

    element (k, n) of B  at  row k / q, column n * q + k % q          (K x N  ->  K/q x N*q)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tlx.diagnostics import EvaluationError
from tlx.evaluate.site import CallSite, Factory, Run, Table, plain, run
from tlx.evaluate.values import BFLOAT16, Array, DType, signed

_ROWS: Final = 16
_BYTES: Final = 64
Dot = Callable[[Array, Array, Array], Array]


def check_shape(rows: int, row_bytes: int) -> None:
    """Refuse a shape that no tile register has.

    Raises:
        EvaluationError: Too many rows or bytes, or none.
    """
    if not (0 < rows <= _ROWS and 0 < row_bytes <= _BYTES):
        raise EvaluationError(f"tile of {rows} rows of {row_bytes} bytes: AMX tiles have 1 to 16 rows of 1 to 64 bytes")


def _zero(rows: int, row_bytes: int) -> Array:
    check_shape(rows, row_bytes)
    return np.zeros((_ROWS, _BYTES), np.uint8)


def _load(site: CallSite) -> Run:
    memory = site.context.memory

    def run(rows: int, row_bytes: int, address: int, stride: int) -> Array:
        tile = _zero(rows, row_bytes)
        stride = signed(stride, 64)
        for row in range(rows):
            data = memory.read(address + row * stride, row_bytes, f"tile load, row {row},")
            tile[row, :row_bytes] = np.frombuffer(data, np.uint8)
        return tile

    return run


def _store(site: CallSite) -> Run:
    memory = site.context.memory

    def run(rows: int, row_bytes: int, address: int, stride: int, tile: Array) -> None:
        check_shape(rows, row_bytes)
        stride = signed(stride, 64)
        for row in range(rows):
            memory.write(address + row * stride, tile[row, :row_bytes].tobytes(), f"tile store, row {row},")

    return run


def _from_vector(value: Array) -> Array:
    """Row after row of 64 bytes; a vector of fewer bytes leaves the rest zero."""
    return np.frombuffer(value.tobytes().ljust(_ROWS * _BYTES, b"\0"), np.uint8).reshape(_ROWS, _BYTES)


def _to_vector(site: CallSite) -> Run:
    decode = site.context.codecs[site.result].decode
    return run(lambda tile: decode(memoryview(tile.tobytes()), 0))


# Products ------------------------------------------------------------------------------------------------------------


def _product(lhs: DType | type[Any], rhs: DType | type[Any], result: DType | type[Any], dot: Dot) -> Factory:
    """Acc + A @ B for A of M x K, B in VNNI order, acc of M x N."""
    q = 4 // np.dtype(lhs).itemsize

    def run(rows: int, n_bytes: int, k_bytes: int, acc: Array, a: Array, b: Array) -> Array:
        check_shape(rows, n_bytes)
        check_shape(k_bytes // 4, k_bytes)
        n, k = n_bytes // 4, k_bytes // 4
        left = a[:rows, :k_bytes].copy().view(lhs)
        right = b[:k, :n_bytes].copy().view(rhs).reshape(k, n, q).transpose(0, 2, 1).reshape(k * q, n)
        total = dot(acc[:rows, :n_bytes].copy().view(result), left, right)
        tile = np.zeros((_ROWS, _BYTES), np.uint8)
        tile[:rows, :n_bytes] = total.view(np.uint8)
        return tile

    return plain(run)


def _integer_dot(acc: Array, a: Array, b: Array) -> Array:
    """Products and sums are exact in double; the addition to acc wraps.

    acc + A @ B
    MxN   MxK KxN
    """
    return acc + (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)


def flushed(numbers: Array) -> Array:
    """Float32 numbers with subnormals as zeros of their sign."""
    return np.where(np.abs(numbers) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), numbers), numbers)


def _pair_dot(acc: Array, a: Array, b: Array) -> Array:
    """The manual's order: even and odd products in sums of their own, then even + odd, then acc; each step flushes."""
    left, right = flushed(a.astype(np.float32)), flushed(b.astype(np.float32))
    sums = [np.zeros_like(acc), np.zeros_like(acc)]
    for k in range(left.shape[1]):
        product = left[:, k : k + 1].astype(np.float64) * right[k : k + 1].astype(np.float64)
        sums[k % 2] = flushed((sums[k % 2].astype(np.float64) + product).astype(np.float32))
    return flushed(flushed(acc) + flushed(sums[0] + sums[1]))


_I8: Final = {"s": np.int8, "u": np.uint8}

AMX: Final[Table] = {
    "x86.tilezero.internal": plain(_zero),
    "x86.tileloadd64.internal": _load,
    "x86.tileloaddt164.internal": _load,
    "x86.tileloaddrs64.internal": _load,
    "x86.tileloaddrst164.internal": _load,
    "x86.tilestored64.internal": _store,
    **{f"x86.tdpb{a}{b}d.internal": _product(_I8[a], _I8[b], np.int32, _integer_dot) for a in "su" for b in "su"},
    "x86.tdpbf16ps.internal": _product(BFLOAT16, BFLOAT16, np.float32, _pair_dot),
    "x86.tdpfp16ps.internal": _product(np.float16, np.float16, np.float32, _pair_dot),
    "x86.cast.vector.to.tile": plain(_from_vector),
    "x86.cast.tile.to.vector": _to_vector,
}
