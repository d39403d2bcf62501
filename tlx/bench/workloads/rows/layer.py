"""A layer of a neural network: y = relu(x @ w + bias), batch x N = batch x K  K x N; bfloat is summed up in float."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tlx.bench.workloads.rows.gemm import loaded_operands
from tlx.intrinsics.numpy_types import Array
from tlx.tuning.measure.verify import ElementwiseCheck
from tlx.tuning.measure.workload import (
    BF16,
    F32,
    GemmProblem,
    LayerProblem,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    dense_tensor_type,
    unpack_vnni,
)

_BATCH: Final = 512


def workloads() -> Iterator[Workload]:
    """All layers of the table."""
    for n in (1024, 2048, 4096):
        yield layer("f32", _BATCH, n, n)
        yield layer("bf16", _BATCH, n, n)
        yield layer("bf16", _BATCH, n, n, vnni=True)


def layer(name: str, m: int, n: int, k: int, *, vnni: bool = False) -> Workload:
    """One layer."""
    element = {"f32": F32, "bf16": BF16}[name]
    gemm = GemmProblem(m, n, k, element, element, F32, element, vnni=vnni)
    buffers = (
        WorkloadBuffer("c", element, gemm.c_shape, output=True),
        WorkloadBuffer("a", element, gemm.a_shape),
        WorkloadBuffer("b", element, gemm.b_shape),
        WorkloadBuffer("bias", F32, (n,)),
    )
    return Workload(
        row="layer",
        types=name,
        size=f"{m}x{n}x{k}",
        variant="vnni B" if vnni else "",
        buffers=buffers,
        text=lambda: _text(gemm, buffers),
        expected=lambda arrays: _expected(gemm, arrays),
        operations=2 * m * n * k,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(element, element, F32),
        problem=LayerProblem(gemm),
    )


def _text(gemm: GemmProblem, buffers: tuple[WorkloadBuffer, ...]) -> str:
    b = WorkloadBuilder(buffers)
    sums, result = dense_tensor_type(F32, gemm.c_shape), dense_tensor_type(gemm.out, gemm.c_shape)
    product = loaded_operands(b, gemm, sums)
    biases = b.broadcast(b.load_buffer("bias"), gemm.c_shape, (1,), sums)
    value = b.unary("relu", b.typeinfo(b.binary("fadd", product, biases), sums), sums)
    if gemm.out is BF16:
        value = b.cast("fptrunc", value, result.vector)
    return b.store_buffer("c", b.typeinfo(value, result))


def _expected(gemm: GemmProblem, arrays: dict[str, Array]) -> ElementwiseCheck:
    x, w = gemm.lhs.widen(arrays["a"]), unpack_vnni(gemm, gemm.rhs.widen(arrays["b"]))
    bias = arrays["bias"].astype(np.float64)
    return ElementwiseCheck(np.maximum(x @ w + bias, 0), np.abs(x) @ np.abs(w) + np.abs(bias), gemm.k + 1)
