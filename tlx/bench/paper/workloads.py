"""The paper's workloads.

    brgemm   c = sum over i of a[i] b[i]           its listings: 4x32x192 (K = 32), 2x4x96 (K = 32), 2x64x64 (K = 64)
    mlp      c = a b, or c = relu(a b + bias)      512 x n x n, with n of 1024, 2048 and 4096

Products of the listings are stored, or added to what c holds (`accumulated`, beta = 1), as the paper's kernels do.
bfloat is summed up in float; the results of layers are bfloat. The layouts of the operands are

    flat            row-major
    vnni            b as [K/2][N][2]
    blocked         a[M/mb][K/kb][mb][kb], b[N/nb][K/kb][kb][nb], c[M/mb][N/nb][mb][nb]: what TPP-MLIR packs into
    blocked vnni    the same, but b[N/nb][K/kb][kb/2][nb][2]

and a layer exists as a `product` alone, with bias and ReLU `fused`, and `unfused`: in passes of their own over the
result. Only our code has the last, for its own comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final

import numpy as np

from tlx.bench.workloads import products
from tlx.diagnostics import UsageError
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.values import Value
from tlx.tuning.workload import (
    BF16,
    F32,
    BlockedProblem,
    ElementwiseCheck,
    GemmProblem,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    dense_tensor_type,
)

BRGEMM: Final = "brgemm"
MLP: Final = "mlp"
PRODUCT: Final = "product"
FUSED: Final = "fused"
UNFUSED: Final = "unfused"
ACCUMULATED: Final = "accumulated"
EPILOGUES: Final = (PRODUCT, FUSED, UNFUSED)
LISTINGS: Final = ((4, (32, 192, 32)), (2, (4, 96, 32)), (2, (64, 64, 64)))
_ROWS: Final = 512
_SIZES: Final = (1024, 2048, 4096)
_SIDE: Final = 32
"""Rows and columns of TPP-MLIR's blocks."""
_LAYOUTS: Final = {"f32": ("flat", "blocked"), "bf16": ("flat", "vnni", "blocked", "blocked vnni")}
_ELEMENTS: Final = {"f32": F32, "bf16": BF16}
_WITH_OUTPUT: Final = {"f32": "f32", "bf16": "bf16->bf16"}


def paper_workloads(sizes: Sequence[int] = _SIZES, rows: int = _ROWS) -> Iterator[Workload]:
    """All of the paper's workloads, with layers of other sizes if given."""
    for types in _LAYOUTS:
        for count, extents in LISTINGS:
            for layout, adds in product(("flat", "vnni") if types == "bf16" else ("flat",), (False, True)):
                vnni = layout == "vnni"
                yield replace(
                    products.batch(types, count, extents, reduced=True, vnni=vnni, accumulates=adds),
                    size="x".join(map(str, (count, *extents))),
                    variant=f"{layout} {ACCUMULATED}" if adds else layout,
                )
    for types, layouts in _LAYOUTS.items():
        for layout in layouts:
            for n in sizes:
                for epilogue in EPILOGUES:
                    yield layer(types, rows, n, layout, epilogue)


def layer(types: str, rows: int, n: int, layout: str, epilogue: str) -> Workload:
    """A layer of `rows` x n x n: a product with or without bias and ReLU, in a layout."""
    m, k, extents = rows, n, (rows, n, n)
    vnni = layout.endswith("vnni")
    if layout.startswith("blocked"):
        work = _blocked_layer(types, extents, vnni=vnni, activated=epilogue != PRODUCT)
    elif epilogue == PRODUCT:
        work = products.product(_WITH_OUTPUT[types], m, n, k, vnni=vnni)
    else:
        work = products.layer(types, m, n, k, vnni=vnni)
    work = replace(work, row=MLP, types=types, size=str(n), variant=f"{layout} {epilogue}")
    if epilogue != UNFUSED:
        return work
    product = layer(types, rows, n, layout, PRODUCT)
    return replace(
        work,
        text=lambda: _unfused_text(work, product),
        expected=partial(_unfused_expected, work, product),
        problem=None,
    )


def select(rows: Sequence[str], types: Sequence[str], sizes: Sequence[str], variants: Sequence[str]) -> list[Workload]:
    """The workloads of the given rows, types, sizes and variants; an empty list means all.

    A variant is a layout, an epilogue, or both. Layers have any size that is a multiple of the blocks.

    Raises:
        UsageError: There is no such row, type, size or variant.
    """
    others = [int(size) for size in sizes if size.isdecimal() and int(size) and int(size) not in _SIZES]
    for size in others:
        if size % _SIDE:
            raise UsageError(f"--sizes={size}: layers have sizes that are multiples of {_SIDE}, the side of a block")
    table = list(paper_workloads([*_SIZES, *others]))
    named: tuple[tuple[str, Sequence[str], Callable[[Workload], set[str]]], ...] = (
        ("row", rows, lambda work: {work.row}),
        ("type", types, lambda work: {work.types}),
        ("size", sizes, lambda work: {work.size}),
        ("variant", variants, _names_of_variant),
    )
    for what, wanted, names_of in named:
        known = list(dict.fromkeys(name for work in table for name in sorted(names_of(work))))
        if unknown := [name for name in wanted if name not in known]:
            raise UsageError(f"unknown {what} '{unknown[0]}'; choose from {', '.join(known)}")
        table = [work for work in table if not wanted or names_of(work) & set(wanted)]
    return table


def _names_of_variant(work: Workload) -> set[str]:
    """The names that select a variant: `blocked vnni`, `fused` and `blocked vnni fused`."""
    if work.row == BRGEMM:
        return {work.variant, *([ACCUMULATED] if work.accumulates else [])}
    layout, epilogue = split_variant(work.variant)
    return {layout, epilogue, work.variant}


def split_variant(variant: str) -> tuple[str, str]:
    """The layout and the epilogue of a variant; products of listings have no epilogue."""
    layout, _, epilogue = variant.rpartition(" ")
    return (layout, epilogue) if epilogue in EPILOGUES else (variant, "")


def _blocked_layer(types: str, extents: tuple[int, int, int], *, vnni: bool, activated: bool) -> Workload:
    m, n, k = extents
    element = _ELEMENTS[types]
    gemm = GemmProblem(m, n, k, element, element, F32, element, vnni=vnni)
    problem = BlockedProblem(gemm, (min(_SIDE, m), _SIDE, _SIDE), activated)
    buffers = (
        WorkloadBuffer("c", element, problem.c_shape, output=True),
        WorkloadBuffer("a", element, problem.a_shape),
        WorkloadBuffer("b", element, problem.b_shape),
        *((WorkloadBuffer("bias", F32, problem.c_shape[1::2]),) if activated else ()),
    )
    return Workload(
        row=MLP,
        types=types,
        size="",
        buffers=buffers,
        text=lambda: _blocked_text(problem, buffers),
        expected=lambda arrays: _blocked_expected(problem, arrays),
        operations=2 * m * n * k,
        traffic=sum(buffer.bytes for buffer in buffers),
        peak=(element, element, F32),
        problem=problem,
    )


def _blocked_text(problem: BlockedProblem, buffers: Sequence[WorkloadBuffer]) -> str:
    """One contraction; its result is stored block by block.

    sums[M/mb, mb, N/nb, nb] = sum over K/kb, kb of a[M/mb, K/kb, mb, kb] b[N/nb, K/kb, kb, nb]
    c[M/mb, N/nb, mb, nb] = transpose(sums)
    """
    b = WorkloadBuilder(buffers)
    outer, across, mb, nb = problem.c_shape
    gemm, unblocked = problem.gemm, (outer, mb, across, nb)
    sums, result = dense_tensor_type(F32, unblocked), dense_tensor_type(gemm.out, unblocked)
    summed = ((1, 3, 4), (1, 2, 4)) if gemm.vnni else ((1, 3), (1, 2))
    value: Value = b.contract(b.load_buffer("a"), b.load_buffer("b"), *summed, result=sums)
    if problem.activated:
        biases = b.broadcast(b.load_buffer("bias"), unblocked, (2, 3), sums)
        value = b.unary("relu", b.typeinfo(b.binary("fadd", value, biases), sums), sums)
    if gemm.out is BF16:
        value = b.cast("fptrunc", value, result.vector)
    blocked = dense_tensor_type(gemm.out, problem.c_shape)
    return b.store_buffer("c", b.typeinfo(b.transpose(b.typeinfo(value, result), (0, 2, 1, 3), blocked), blocked))


def _blocked_expected(problem: BlockedProblem, arrays: dict[str, Array]) -> ElementwiseCheck:
    gemm = problem.gemm
    a, b = gemm.lhs.widen(arrays["a"]), gemm.rhs.widen(arrays["b"])
    x = a.swapaxes(1, 2).reshape(gemm.m, gemm.k)
    blocks = b.swapaxes(3, 4) if gemm.vnni else b
    w = blocks.reshape(gemm.n // problem.blocks[1], gemm.k, -1).swapaxes(0, 1).reshape(gemm.k, gemm.n)
    bias = arrays["bias"].reshape(-1).astype(np.float64) if problem.activated else np.zeros(gemm.n)
    values, magnitude = x @ w + bias, np.abs(x) @ np.abs(w) + np.abs(bias)
    if problem.activated:
        values = np.maximum(values, 0)
    outer, across, mb, nb = problem.c_shape
    values, magnitude = (v.reshape(outer, mb, across, nb).swapaxes(1, 2) for v in (values, magnitude))
    return ElementwiseCheck(values.copy(), magnitude.copy(), gemm.k + 1)


def _unfused_text(work: Workload, product: Workload) -> str:
    """The product, then two passes over its result: one adds the biases, one computes ReLU.

    All three are functions of their own, so that they are not fused.
    """
    c, bias = work.output, next(buffer for buffer in work.buffers if buffer.name == "bias")
    biased = tuple(axis for axis in range(len(c.shape)) if axis % 2)  # columns, of blocks and in blocks
    parts = {
        "product": (product.buffers, product.text()),
        "add_bias": ((c, bias), _pass_text((c, bias), lambda b, x, f32: _plus_bias(b, x, biased, f32))),
        "activate": ((c,), _pass_text((c,), lambda b, x, f32: b.unary("relu", b.typeinfo(x, f32), f32))),
    }
    pointers = {name: ", ".join(f"ptr %{buffer.name}" for buffer in own) for name, (own, _) in parts.items()}
    calls = "".join(f"  call void @{name}({pointers[name]})\n" for name in parts)
    parameters = ", ".join(f"ptr noalias %{buffer.name}" for buffer in work.buffers)
    text = [f"define dso_local void @work({parameters}) nounwind {{\n{calls}  ret void\n}}"]
    text += [module.replace("@work(", f"@{name}(") for name, (_, module) in parts.items()]
    lines = "\n".join(text).splitlines()
    declarations = dict.fromkeys(line for line in lines if line.startswith("declare"))
    return "\n".join([*declarations, *(line for line in lines if not line.startswith("declare"))]) + "\n"


def _pass_text(
    buffers: Sequence[WorkloadBuffer], compute: Callable[[WorkloadBuilder, Value, TensorType], Value]
) -> str:
    """A function that updates its first buffer elementwise, in float."""
    b, c = WorkloadBuilder(buffers), buffers[0]
    floats, own = dense_tensor_type(F32, c.shape), dense_tensor_type(c.element, c.shape)
    value: Value = b.tovector(b.load_buffer(c.name))
    if c.element is BF16:
        value = b.cast("fpext", value, floats.vector)
    value = compute(b, value, floats)
    if c.element is BF16:
        value = b.cast("fptrunc", value, own.vector)
    return b.store_buffer(c.name, b.typeinfo(value, own))


def _plus_bias(b: WorkloadBuilder, x: Value, columns: tuple[int, ...], floats: TensorType) -> Value:
    return b.binary("fadd", x, b.broadcast(b.load_buffer("bias"), floats.shape, columns, floats))


def _unfused_expected(work: Workload, product: Workload, arrays: dict[str, Array]) -> ElementwiseCheck:
    """As of the fused layer, with the roundings of the product and of its sum with the biases."""
    whole, sums = (of.expected(arrays) if of.expected else None for of in (work, product))
    assert isinstance(whole, ElementwiseCheck)
    assert isinstance(sums, ElementwiseCheck)
    roundings = (2 << (24 - work.output.element.precision)) * (np.abs(sums.values) + 1)  # biases are at most 1
    magnitude = whole.magnitude + roundings / whole.terms if whole.magnitude is not None else None
    return replace(whole, magnitude=magnitude)
