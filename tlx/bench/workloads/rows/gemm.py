"""Matrix products: c = a @ b, MxN = MxK KxN, each operand row by row unless the variant says otherwise.

plain       A and B as they are; packing them, where it pays, is part of what is timed
vnni B      B lies in memory as [K/v][N][v]: v = 2 for 16 bits, 4 for 8 bits
AB columns  these operands lie column by column
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.values import Local, Value, zero
from tlx.tuning.measure.verify import ElementwiseCheck, freivalds_check
from tlx.tuning.measure.workload import (
    BF16,
    F16,
    F32,
    F64,
    S8,
    S32,
    U8,
    Element,
    GemmProblem,
    ResultCheck,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    dense_tensor_type,
    unpack_vnni,
)

Types = tuple[Element, Element, Element, Element]

TYPES: Final[dict[str, Types]] = {
    "f32": (F32, F32, F32, F32),
    "f64": (F64, F64, F64, F64),
    "bf16": (BF16, BF16, F32, F32),
    "bf16->bf16": (BF16, BF16, F32, BF16),
    "s8": (S8, S8, S32, S32),
    "u8s8": (U8, S8, S32, S32),
    "f16": (F16, F16, F32, F32),
}
_SQUARES: Final = (8, 16, 32, 64, 100, 128, 256, 512, 1000, 1024, 2048, 4096)
_ODD: Final = ((13, 17, 19), (12, 24, 36), (31, 33, 35))
_SKINNY: Final = ((1, 1024, 1024), (4, 1024, 1024), (16, 1024, 1024), (1024, 1, 1024))
_BLOCKED: Final = (64, 128, 256, 512, 1024, 2048)
_PROBED: Final = 1 << 33  # multiplications above which the result is checked by probes
_COLUMNS: Final = ("a", "b", "c", "ab", "abc")


def workloads() -> Iterator[Workload]:
    """All products of the table."""
    for name in TYPES:
        for n in _SQUARES:
            yield product(name, n, n, n)
        for m, n, k in (*_ODD, *_SKINNY):
            yield product(name, m, n, k)
        if name in {"bf16", "s8", "u8s8"}:
            for n in _BLOCKED:
                yield product(name, n, n, n, vnni=True)
        if name in {"f32", "bf16", "u8s8"}:
            for columns in _COLUMNS:
                for n in (64, 512, 1024):
                    yield product(name, n, n, n, columns=columns)


def product(name: str, m: int, n: int, k: int, columns: str = "", *, vnni: bool = False) -> Workload:
    """One product of the types that `TYPES` has under that name."""
    problem = GemmProblem(m, n, k, *TYPES[name], columns=columns, vnni=vnni)
    buffers = (
        WorkloadBuffer("c", problem.out, problem.c_shape, output=True),
        WorkloadBuffer("a", problem.lhs, problem.a_shape),
        WorkloadBuffer("b", problem.rhs, problem.b_shape),
    )
    return Workload(
        row="gemm",
        types=name,
        size=str(m) if m == n == k else f"{m}x{n}x{k}",
        variant="vnni B" if vnni else f"{columns.upper()} columns" if columns else "",
        buffers=buffers,
        text=lambda: _text(problem, buffers),
        expected=lambda arrays: _expected(problem, arrays),
        operations=2 * m * n * k,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(problem.lhs, problem.rhs, problem.accumulator),
        problem=problem,
    )


def loaded_operands(b: WorkloadBuilder, gemm: GemmProblem, result: TensorType) -> Local:
    """The product of the buffers `a` and `b`, as the sums' tensor type has it."""
    a = b.load_buffer("a", (1, 0) if "a" in gemm.columns else None)
    rhs = b.load_buffer("b", (1, 0) if "b" in gemm.columns else None)
    if gemm.lhs is U8:
        if gemm.vnni:
            flat = dense_tensor_type(gemm.rhs, (gemm.k, gemm.n))
            rhs = b.typeinfo(b.reshape_permute(rhs, (0, 2, 1), flat.shape, flat), flat)
        return b.mma("usmma", b.typeinfo(zero(result.vector), result), a, rhs, result)
    if gemm.vnni:  # MxK is M x K/v x v; the sum is over both of the last dimensions
        a = b.tensor_load(b.buffer("a"), dense_tensor_type(gemm.lhs, (gemm.m, gemm.k // gemm.factor, gemm.factor)))
        return b.contract(a, rhs, (1, 2), (0, 2), result=result)
    return b.matmul(a, rhs, result)


def _text(gemm: GemmProblem, buffers: tuple[WorkloadBuffer, ...]) -> str:
    b = WorkloadBuilder(buffers)
    result = dense_tensor_type(gemm.accumulator, (gemm.m, gemm.n))
    value: Value = loaded_operands(b, gemm, result)
    if gemm.out is BF16:
        result = dense_tensor_type(gemm.out, (gemm.m, gemm.n))
        value = b.cast("fptrunc", value, result.vector)
    token = b.typeinfo(value, result)
    if "c" in gemm.columns:
        turned = dense_tensor_type(gemm.out, gemm.c_shape, (1, 0))
        token = b.typeinfo(b.transpose(token, (1, 0), turned), turned)
    return b.store_buffer("c", token)


def _expected(gemm: GemmProblem, arrays: dict[str, Array]) -> ResultCheck:
    a, b = arrays["a"], arrays["b"]
    if "a" in gemm.columns:
        a = a.T
    b = b.T if "b" in gemm.columns else unpack_vnni(gemm, b)
    exact, turned = not gemm.accumulator.is_float, "c" in gemm.columns
    if gemm.m * gemm.n * gemm.k > _PROBED:
        return freivalds_check(*((b.T, a.T, gemm.rhs, gemm.lhs) if turned else (a, b, gemm.lhs, gemm.rhs)), exact=exact)
    x, y = gemm.lhs.widen(a).astype(np.float64), gemm.rhs.widen(b).astype(np.float64)
    values = x @ y  # exact for bytes up to K = 2^37
    magnitude = None if exact else np.abs(x) @ np.abs(y)
    if turned:
        values, magnitude = values.T, None if magnitude is None else magnitude.T
    return ElementwiseCheck(values, magnitude, gemm.k)
