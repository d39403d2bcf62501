"""Matrix products: single ones, batches, layers, and a fused kernel of two.

Products, c = a @ b, MxN = MxK KxN, are row-major unless the variant says otherwise:

plain       A and B row-major; packing them, where it pays, is part of the measured time
vnni B      B is stored as [K/v][N][v]: v = 2 for 16-bit elements, 4 for 8-bit ones
prepared B  B is constant over calls, such as weights: packing it once, before the first call, is not measured
AB columns  these operands are column-major

Batches consist of small products, c[i] = a[i] @ b[i], or are batch-reduce, c = sum over i of a[i] @ b[i]. A layer is
y = relu(x @ w + bias), batch x N = batch x K  K x N; bfloat is accumulated in float.

Fused: a kernel of the tensor language on 10,000 small matrices, 16x8 8x8 and 16x8 8x16: t = a b^T;  d += alpha t c.
Memory bounds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.values import Local, Value, zero
from tlx.lower.pipeline import front_ends
from tlx.tuning.workload import (
    BF16,
    F16,
    F32,
    F64,
    S8,
    S32,
    U8,
    BatchProblem,
    Element,
    ElementwiseCheck,
    FusedProblem,
    GemmProblem,
    LayerProblem,
    ResultCheck,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    dense_tensor_type,
    freivalds_check,
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
_WEIGHTS: Final = ((1, 4096, 4096), (8, 4096, 4096), (49, 512, 4608), (196, 256, 2304), (128, 768, 3072))
_BLOCKED: Final = (64, 128, 256, 512, 1024, 2048)
PROBED_OPERATIONS: Final = 1 << 33  # multiplications above which the result is checked by probes
_COLUMN_MAJOR_OPERANDS: Final = ("a", "b", "c", "ab", "abc")


def named_types(*elements: Element) -> str | None:
    """The name of the types of a product: of its operands, its sums and its result; None if the table has none."""
    return next((name for name, types in TYPES.items() if types == elements), None)


def gemm_workloads() -> Iterator[Workload]:
    """All products of the table."""
    for name in TYPES:
        for n in _SQUARES:
            yield product(name, n, n, n)
        for m, n, k in (*_ODD, *_SKINNY):
            yield product(name, m, n, k)
        if name in {"bf16", "s8", "u8s8"}:
            for n in _BLOCKED:
                yield product(name, n, n, n, vnni=True)
        if name in {"f32", "bf16", "s8"}:
            for m, n, k in _WEIGHTS:
                yield product(name, m, n, k, prepared=True)
        if name in {"f32", "bf16", "u8s8"}:
            for columns in _COLUMN_MAJOR_OPERANDS:
                for n in (64, 512, 1024):
                    yield product(name, n, n, n, columns=columns)


def product(
    name: str,
    m: int,
    n: int,
    k: int,
    columns: str = "",
    *,
    vnni: bool = False,
    prepared: bool = False,
    accumulates: bool = False,
) -> Workload:
    """One product of the types that `TYPES` lists under this name."""
    problem = GemmProblem(m, n, k, *TYPES[name], columns, vnni, prepared, accumulates)
    variants = {"vnni B": vnni, "prepared B": prepared, f"{columns.upper()} columns": bool(columns)}
    buffers = (
        WorkloadBuffer("c", problem.out, problem.c_shape, output=True),
        WorkloadBuffer("a", problem.lhs, problem.a_shape),
        WorkloadBuffer("b", problem.rhs, problem.b_shape, constant=prepared),
    )
    return Workload(
        row="gemm",
        types=name,
        size=str(m) if m == n == k else f"{m}x{n}x{k}",
        variant=", ".join(variant for variant, holds in variants.items() if holds),
        buffers=buffers,
        text=lambda: _gemm_text(problem, buffers),
        expected=lambda arrays: _gemm_expected(problem, arrays),
        operations=2 * m * n * k,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(problem.lhs, problem.rhs, problem.accumulator),
        problem=problem,
    )


def loaded_operands(b: WorkloadBuilder, gemm: GemmProblem, result: TensorType) -> Local:
    """Emit the product of the buffers `a` and `b`; `result` is its tensor type."""
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


def _gemm_text(gemm: GemmProblem, buffers: tuple[WorkloadBuffer, ...]) -> str:
    b = WorkloadBuilder(buffers)
    result = dense_tensor_type(gemm.accumulator, (gemm.m, gemm.n))
    value: Value = loaded_operands(b, gemm, result)
    if gemm.accumulates:
        value = _added_to_c(b, gemm, value)
    if gemm.out is BF16:
        result = dense_tensor_type(gemm.out, (gemm.m, gemm.n))
        value = b.cast("fptrunc", value, result.vector)
    token = b.typeinfo(value, result)
    if "c" in gemm.columns:
        column_major = dense_tensor_type(gemm.out, gemm.c_shape, (1, 0))
        token = b.typeinfo(b.transpose(token, (1, 0), column_major), column_major)
    return b.store_buffer("c", token)


def _added_to_c(b: WorkloadBuilder, gemm: GemmProblem, value: Value) -> Value:
    """What `c` holds plus the sums of a product, in any order, as libraries add them."""
    before = b.tovector(b.load_buffer("c"))
    if gemm.out.is_float:
        return b.binary("fadd", before, value, flags="reassoc")
    return b.binary("add", before, value)


def _gemm_expected(gemm: GemmProblem, arrays: dict[str, Array]) -> ResultCheck:
    a, b = arrays["a"], arrays["b"]
    if "a" in gemm.columns:
        a = a.T
    b = b.T if "b" in gemm.columns else unpack_vnni(gemm, b)
    exact, transposed = not gemm.accumulator.is_float, "c" in gemm.columns
    if gemm.m * gemm.n * gemm.k > PROBED_OPERATIONS and not gemm.accumulates:
        return freivalds_check(
            *((b.T, a.T, gemm.rhs, gemm.lhs) if transposed else (a, b, gemm.lhs, gemm.rhs)), exact=exact
        )
    x, y = gemm.lhs.widen(a).astype(np.float64), gemm.rhs.widen(b).astype(np.float64)
    values = x @ y  # exact for bytes up to K = 2^37
    magnitude = None if exact else np.abs(x) @ np.abs(y)
    if gemm.accumulates:
        values, magnitude = values + 1, None if magnitude is None else magnitude + 1
    if transposed:
        values, magnitude = values.T, None if magnitude is None else magnitude.T
    return ElementwiseCheck(values, magnitude, gemm.k)


_BATCH: Final = 10_000
_BLOCKS: Final = 16


def batch_workloads() -> Iterator[Workload]:
    """All batches of the table."""
    for name in ("f32", "f64", "bf16"):
        for n in (8, 16, 32):
            yield batch(name, _BATCH, (n, n, n))
    for name in ("f32", "bf16", "s8"):
        for n in (32, 64):
            yield batch(name, _BLOCKS, (n, n, n), reduced=True)


def batch(
    name: str,
    count: int,
    extents: tuple[int, int, int],
    *,
    reduced: bool = False,
    vnni: bool = False,
    accumulates: bool = False,
) -> Workload:
    """A batch of products of matrices of these extents, M, N and K; a sum of them may be added to what c holds."""
    m, n, k = extents
    gemm = GemmProblem(m, n, k, *TYPES[name], vnni=vnni, accumulates=accumulates)
    buffers = (
        WorkloadBuffer("c", gemm.out, (m, n) if reduced else (count, m, n), output=True),
        WorkloadBuffer("a", gemm.lhs, (count, m, k)),
        WorkloadBuffer("b", gemm.rhs, (count, *gemm.b_shape)),
    )
    return Workload(
        row="brgemm" if reduced else "batch",
        types=name,
        size=f"{count}x{n}" if m == n == k else f"{count}x{m}x{n}x{k}",
        variant="vnni B" if vnni else "",
        buffers=buffers,
        text=lambda: _batch_text(gemm, buffers, reduced=reduced),
        expected=lambda arrays: _batch_expected(gemm, arrays, reduced=reduced),
        operations=2 * count * m * n * k,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(gemm.lhs, gemm.rhs, gemm.accumulator),
        problem=BatchProblem(count, gemm, reduced),
    )


def _batch_text(gemm: GemmProblem, buffers: tuple[WorkloadBuffer, ...], *, reduced: bool) -> str:
    b = WorkloadBuilder(buffers)
    result = dense_tensor_type(gemm.accumulator, buffers[0].shape)
    y = b.load_buffer("b")
    if gemm.vnni:  # the sum is over the batch, K/v and v
        shape = (buffers[1].shape[0], gemm.m, gemm.k // gemm.factor, gemm.factor)
        x = b.tensor_load(b.buffer("a"), dense_tensor_type(gemm.lhs, shape))
        value = b.contract(x, y, (0, 2, 3), (0, 1, 3), result=result)
    else:
        x = b.load_buffer("a")
        value = b.contract(x, y, (0, 2), (0, 1), result=result) if reduced else b.matmul(x, y, result)
    if gemm.accumulates:
        value = _added_to_c(b, gemm, value)
    return b.store_buffer("c", b.typeinfo(value, result))


def _batch_expected(gemm: GemmProblem, arrays: dict[str, Array], *, reduced: bool) -> ElementwiseCheck:
    a, b = (e.widen(arrays[n]).astype(np.float64) for e, n in ((gemm.lhs, "a"), (gemm.rhs, "b")))
    if gemm.vnni:
        b = b.swapaxes(2, 3).reshape(len(b), gemm.k, gemm.n)
    values, magnitude = a @ b, np.abs(a) @ np.abs(b)
    if reduced:
        values, magnitude = values.sum(0), magnitude.sum(0)
    if gemm.accumulates:
        values, magnitude = values + 1, magnitude + 1
    return ElementwiseCheck(values, None if gemm.rhs is S8 else magnitude, gemm.k * (len(a) if reduced else 1))


_LAYER_BATCH: Final = 512


def layer_workloads() -> Iterator[Workload]:
    """All layers of the table."""
    for n in (1024, 2048, 4096):
        yield layer("f32", _LAYER_BATCH, n, n)
        yield layer("bf16", _LAYER_BATCH, n, n)
        yield layer("bf16", _LAYER_BATCH, n, n, vnni=True)


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
        text=lambda: _layer_text(gemm, buffers),
        expected=lambda arrays: _layer_expected(gemm, arrays),
        operations=2 * m * n * k,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(element, element, F32),
        problem=LayerProblem(gemm),
    )


def _layer_text(gemm: GemmProblem, buffers: tuple[WorkloadBuffer, ...]) -> str:
    b = WorkloadBuilder(buffers)
    sums, result = dense_tensor_type(F32, gemm.c_shape), dense_tensor_type(gemm.out, gemm.c_shape)
    product = loaded_operands(b, gemm, sums)
    biases = b.broadcast(b.load_buffer("bias"), gemm.c_shape, (1,), sums)
    value = b.unary("relu", b.typeinfo(b.binary("fadd", product, biases), sums), sums)
    if gemm.out is BF16:
        value = b.cast("fptrunc", value, result.vector)
    return b.store_buffer("c", b.typeinfo(value, result))


def _layer_expected(gemm: GemmProblem, arrays: dict[str, Array]) -> ElementwiseCheck:
    x, w = gemm.lhs.widen(arrays["a"]), unpack_vnni(gemm, gemm.rhs.widen(arrays["b"]))
    bias = arrays["bias"].astype(np.float64)
    return ElementwiseCheck(np.maximum(x @ w + bias, 0), np.abs(x) @ np.abs(w) + np.abs(bias), gemm.k + 1)


_FUSED_BATCH: Final = 10_000
_ALPHA: Final = 1e-3
_SUFFIX: Final = ".tl"
_FUSED_KERNEL: Final = """
func @fused(%alpha: f32, %a: memref<f32x16x8x?>, %b: memref<f32x8x8>, %c: memref<f32x8x16>, %d: memref<f32x16x16x?>) {
  %zero = constant 0.0 : f32
  %one = constant 1.0 : f32
  %g = group_id.x : index
  %x = subview %a[0:16,0:8,%g] : memref<f32x16x8>
  %y = subview %d[0:16,0:16,%g] : memref<f32x16x16>
  %t = alloca : memref<f32x16x8,local>
  gemm.n.t %one, %x, %b, %zero, %t
  gemm.n.n %alpha, %t, %c, %one, %y
}
"""


def fused_workloads() -> Iterator[Workload]:
    """The fused kernel of the table."""
    yield fused(_FUSED_BATCH)


def fused(count: int) -> Workload:
    """The kernel on `count` groups; matrices are column-major."""
    buffers = (
        WorkloadBuffer("d", F32, (count, 16, 16), output=True),
        WorkloadBuffer("a", F32, (count, 8, 16)),
        WorkloadBuffer("b", F32, (8, 8)),
        WorkloadBuffer("c", F32, (16, 8)),
    )
    groups: list[tuple[str, float]] = [("i64", count), ("i64", 1), ("i64", 1)]
    return Workload(
        row="fused",
        types="f32",
        size=f"{count}x16",
        buffers=buffers,
        text=_text,
        expected=_expected,
        operations=count * (2 * 16 * 8 * 8 + 2 * 16 * 8 * 16 + 2 * 16 * 16),
        traffic=sum(buffer.bytes for buffer in buffers) + buffers[0].bytes,  # d is read, too
        peak=(F32, F32, F32),
        problem=FusedProblem(count),
        function="fused",
        order=(("float", _ALPHA), "a", ("i64", count), "b", "c", "d", ("i64", count), *groups),
    )


def _text() -> str:
    translate = next(f.TRANSLATE for f in front_ends() if _SUFFIX in getattr(f, "SUFFIXES", ()))
    return str(translate(_FUSED_KERNEL, f"fused{_SUFFIX}", "none"))


def _expected(arrays: dict[str, Array]) -> ElementwiseCheck:
    """The expected `d`, which starts with negligible values."""
    a, b, c = (arrays[name].astype(np.float64).swapaxes(-1, -2) for name in "abc")
    values = _ALPHA * (a @ b.T @ c)
    magnitude = _ALPHA * (np.abs(a) @ np.abs(b.T) @ np.abs(c))
    return ElementwiseCheck(values.swapaxes(1, 2), magnitude.swapaxes(1, 2) + 1e-9, 18)
