"""Many small products: c[i] = a[i] @ b[i], and batch-reduce, c = sum over i of a[i] @ b[i]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tlx.bench.workloads.rows.gemm import TYPES
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.measure.verify import ElementwiseCheck
from tlx.tuning.measure.workload import (
    S8,
    BatchProblem,
    GemmProblem,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    dense_tensor_type,
)

_BATCH: Final = 10_000
_BLOCKS: Final = 16


def workloads() -> Iterator[Workload]:
    """All batches of the table."""
    for name in ("f32", "f64", "bf16"):
        for n in (8, 16, 32):
            yield batch(name, _BATCH, n)
    for name in ("f32", "bf16", "s8"):
        for n in (32, 64):
            yield batch(name, _BLOCKS, n, reduced=True)


def batch(name: str, count: int, n: int, *, reduced: bool = False) -> Workload:
    """A batch of products of `n` x `n` matrices."""
    gemm = GemmProblem(n, n, n, *TYPES[name])
    buffers = (
        WorkloadBuffer("c", gemm.out, (n, n) if reduced else (count, n, n), output=True),
        WorkloadBuffer("a", gemm.lhs, (count, n, n)),
        WorkloadBuffer("b", gemm.rhs, (count, n, n)),
    )
    return Workload(
        row="brgemm" if reduced else "batch",
        types=name,
        size=f"{count}x{n}",
        buffers=buffers,
        text=lambda: _text(gemm, buffers, reduced=reduced),
        expected=lambda arrays: _expected(gemm, arrays, reduced=reduced),
        operations=2 * count * n**3,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(gemm.lhs, gemm.rhs, gemm.accumulator),
        problem=BatchProblem(count, gemm, reduced),
    )


def _text(gemm: GemmProblem, buffers: tuple[WorkloadBuffer, ...], *, reduced: bool) -> str:
    b = WorkloadBuilder(buffers)
    result = dense_tensor_type(gemm.accumulator, buffers[0].shape)
    x, y = b.load_buffer("a"), b.load_buffer("b")
    value = b.contract(x, y, (0, 2), (0, 1), result=result) if reduced else b.matmul(x, y, result)
    return b.store_buffer("c", b.typeinfo(value, result))


def _expected(gemm: GemmProblem, arrays: dict[str, Array], *, reduced: bool) -> ElementwiseCheck:
    a, b = (e.widen(arrays[n]).astype(np.float64) for e, n in ((gemm.lhs, "a"), (gemm.rhs, "b")))
    values, magnitude = a @ b, np.abs(a) @ np.abs(b)
    if reduced:
        values, magnitude = values.sum(0), magnitude.sum(0)
    return ElementwiseCheck(values, None if gemm.rhs is S8 else magnitude, gemm.k * (len(a) if reduced else 1))
