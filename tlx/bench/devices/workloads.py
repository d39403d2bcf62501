"""The workloads for devices: graphs of tensors, and the same computations in PyTorch.

gemm          c = a @ b; squares, and the shapes of transformers and other networks; `B columns`: b is column-major
batch         many products of small matrices
mlp           gelu(x @ w + bias), GELU in its usual approximation
attention     softmax(q k^T / sqrt(d)) v for each head, 16 heads and as many sequences as make 16,384 tokens; S x d;
              `exact`: the division is not reassociated
convolution   those of ResNet-50, each once, on 32 images whose borders are padded beforehand
softmax, layernorm, rowsum, add: rows x columns; they are memory-bound

Sums of bfloat and half are float, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tlx.bench.workloads.convolutions import LAYERS
from tlx.graph import Graph, Value
from tlx.lower.options import FloatProducts, Fp8Products
from tlx.tuning.workload import BF16, E4M3, F16, F32, F64, S8, S32, Element, MemoryTraffic, Workload, WorkloadBuffer

Shape = tuple[int, ...]
Peer = Callable[[Any, Sequence[Any], Any], list[Callable[[], Any]]]
"""The ways in which a library computes a workload, given itself, the operands and the result's memory.

Each returns the result, in that memory or elsewhere."""


@dataclass(frozen=True)
class DeviceProblem:
    """What peers compute.

    Attributes:
        torch: By PyTorch.
        float_products, fp8_products: How our code multiplies floats and 8-bit floats, as in `tlx.lower.options`.
    """

    torch: Peer
    float_products: FloatProducts = "exact"
    fp8_products: Fp8Products = "exact"


_DTYPES: Final = {
    E4M3: "float8_e4m3fn",
    BF16: "bfloat16",
    F16: "float16",
    F32: "float32",
    F64: "float64",
    S8: "int8",
    S32: "int32",
}
_SQUARES: Final = (1024, 2048, 4096, 8192, 16384)
_TRANSFORMERS: Final = ((1, 4096, 4096), (8, 4096, 4096), (49, 512, 4608), (196, 256, 2304), (128, 768, 3072))
_BATCHES: Final = ((4096, 32), (512, 64), (256, 128), (64, 256))
_MLPS: Final = ((128, 3072, 768), (512, 4096, 4096), (4096, 4096, 4096), (8192, 4096, 1024))
_SEQUENCES: Final = (512, 1024, 2048, 4096, 8192)
_TOKENS: Final = 16384
_HEADS: Final = 16
_ROWS: Final = ((4096, 4096), (32768, 1024), (8192, 8192))
_IMAGES: Final = 32
_CHANNELS_LAST: Final = ("NHWC", "OHWI", "NHWC")
_CHANNELS_FIRST: Final = ("NCHW", "OIHW", "NCHW")
_ALSO_FIRST: Final = tuple(LAYERS[number] for number in (0, 2, 4, 16, 22))
"""Layers that are measured in both orders."""


def device_workloads() -> Iterator[Workload]:
    """The whole table."""
    yield from _gemms()
    for count, n in _BATCHES:
        yield batch(count, n)
    for m, n, k in _MLPS:
        yield mlp(m, n, k)
    for depth in (64, 128):
        for length in _SEQUENCES:
            yield attention(length, depth)
            yield attention(length, depth, exact=True)
            yield attention(length, depth, length)
    for channels, filters, side, window, stride in LAYERS:
        yield convolution(channels, filters, side, window, stride)
    for channels, filters, side, window, stride in _ALSO_FIRST:
        yield convolution(channels, filters, side, window, stride, channels_last=False)
    for rows, columns in _ROWS:
        yield from of_rows(rows, columns)


def _gemms() -> Iterator[Workload]:
    for n in _SQUARES:
        yield gemm("bf16->bf16", (BF16, BF16), (n, n, n))
        yield gemm("f16->f16", (F16, F16), (n, n, n))
        yield gemm("s8", (S8, S32), (n, n, n))
        yield gemm("s8", (S8, S32), (n, n, n), columns=True)
        yield gemm("e4m3->bf16", (E4M3, BF16), (n, n, n), columns=True)
    for name, element in (("f32", F32), ("f64", F64)):
        for n in (1024, 4096):
            yield gemm(name, (element, element), (n, n, n))
            if element is F32:
                yield gemm(name, (element, element), (n, n, n), tf32=True)
    for m, n, k in _TRANSFORMERS:
        yield gemm("bf16->bf16", (BF16, BF16), (m, n, k))


def gemm(
    types: str,
    elements: tuple[Element, Element],
    extents: tuple[int, int, int],
    *,
    columns: bool = False,
    tf32: bool = False,
) -> Workload:
    """A product; with `columns`, b is column-major, and with `tf32`, products of floats are rounded."""
    (m, n, k), (element, out) = extents, elements

    def build(g: Graph, a: Value, b: Value) -> Value:
        return g.matmul(a, g.transpose(b) if columns else b, dtype=_DTYPES[out])

    def by_torch(torch: Any, x: Sequence[Any], c: Any) -> list[Callable[[], Any]]:
        a, b = x
        if tf32:
            return [lambda: _rounded(torch, a, b, c)]
        if element not in (S8, E4M3):
            return [lambda: torch.matmul(a, b.t() if columns else b, out=c)]
        stored = b if columns else b.t().contiguous()  # the only order that it multiplies at full speed
        if element is E4M3:
            return [lambda: _scaled(torch, a, stored, c)]
        return [lambda: torch._int_mm(a, stored.t(), out=c)]  # noqa: SLF001 (its only product of 8-bit integers)

    return _workload(
        ("gemm", types, str(m) if m == n == k else f"{m}x{n}x{k}", "B columns" if columns else "tf32" if tf32 else ""),
        (("a", element, (m, k)), ("b", element, (n, k) if columns else (k, n))),
        (out, (m, n)),
        build,
        DeviceProblem(by_torch, "tf32" if tf32 else "exact", "tensor-cores" if element is E4M3 else "exact"),
        2 * m * n * k,
    )


def _scaled(torch: Any, a: Any, b: Any, c: Any) -> Any:
    """The product of 8-bit floats, with b column-major, by PyTorch, whose tensor cores add it as ours do."""
    one = torch.ones((), device=a.device)
    return torch._scaled_mm(a, b.t(), one, one, out_dtype=c.dtype, use_fast_accum=True)  # noqa: SLF001 (its only one)


def _rounded(torch: Any, a: Any, b: Any, c: Any) -> Any:
    """The product by PyTorch as TF32."""
    settings = torch.backends.cuda.matmul
    settings.allow_tf32 = True
    try:
        return torch.matmul(a, b, out=c)
    finally:
        settings.allow_tf32 = False


def batch(count: int, n: int) -> Workload:
    """Products of n x n matrices."""

    def by_torch(torch: Any, x: Sequence[Any], c: Any) -> list[Callable[[], Any]]:
        return [lambda: torch.bmm(*x, out=c)]

    return _workload(
        ("batch", "bf16->bf16", f"{count}x{n}", ""),
        (("a", BF16, (count, n, n)), ("b", BF16, (count, n, n))),
        (BF16, (count, n, n)),
        Graph.matmul,
        DeviceProblem(by_torch),
        2 * count * n**3,
    )


def mlp(m: int, n: int, k: int) -> Workload:
    """A layer of a perceptron with GELU."""

    def build(g: Graph, x: Value, w: Value, bias: Value) -> Value:
        return g.convert(g.gelu(g.add(g.matmul(x, w, dtype="float32"), bias)), "bfloat16")

    def by_torch(torch: Any, given: Sequence[Any], c: Any) -> list[Callable[[], Any]]:
        x, w, bias = given
        narrow, gelu = bias.bfloat16(), torch.nn.functional.gelu
        fused = torch._addmm_activation  # noqa: SLF001 (its only product with the activation in the epilogue)
        return [
            lambda: gelu(torch.addmm(narrow, x, w, out=c), approximate="tanh"),
            lambda: fused(narrow, x, w, use_gelu=True, out=c),
        ]

    return _workload(
        ("mlp", "bf16->bf16", f"{m}x{n}x{k}", ""),
        (("x", BF16, (m, k)), ("w", BF16, (k, n)), ("bias", F32, (n,))),
        (BF16, (m, n)),
        build,
        DeviceProblem(by_torch),
        2 * m * n * k,
    )


def attention(length: int, depth: int, tokens: int = _TOKENS, *, exact: bool = False) -> Workload:
    """Attention of sequences of a length, or of one of them if there are no more tokens.

    The softmax may be reassociated, as that of libraries is, unless `exact`.
    """
    heads = tokens // length * _HEADS
    shape = (heads, length, depth)

    def build(g: Graph, q: Value, k: Value, v: Value) -> Value:
        scores = g.multiply(g.matmul(q, g.transpose(k, (0, 2, 1)), dtype="float32"), depth**-0.5)
        return g.matmul(g.convert(g.softmax(scores, reassociated=not exact), "bfloat16"), v)

    def by_torch(torch: Any, given: Sequence[Any], _: Any) -> list[Callable[[], Any]]:
        q, k, v = (array.reshape(-1, _HEADS, length, depth) for array in given)
        attention = torch.nn.functional.scaled_dot_product_attention
        return [lambda: attention(q, k, v).reshape(shape)]

    return _workload(
        (
            "attention",
            "bf16->bf16",
            f"{length}x{depth}",
            "exact" if exact else "one sequence" if tokens == length else "",
        ),
        tuple((name, BF16, shape) for name in "qkv"),
        (BF16, shape),
        build,
        DeviceProblem(by_torch),
        4 * heads * length**2 * depth,
    )


def convolution(
    channels: int,
    filters: int,
    side: int,
    window: int,
    stride: int,
    images: int = _IMAGES,
    *,
    channels_last: bool = True,
) -> Workload:
    """A convolution of images of bfloat."""
    padded = side + 2 * (window // 2)
    positions = (padded - window) // stride + 1
    layouts = _CHANNELS_LAST if channels_last else _CHANNELS_FIRST

    def build(g: Graph, x: Value, w: Value) -> Value:
        return g.convolution(x, w, stride, "valid", layouts=layouts)

    def by_torch(torch: Any, given: Sequence[Any], _: Any) -> list[Callable[[], Any]]:
        convolve = torch.nn.functional.conv2d
        if not channels_last:
            return [lambda: convolve(*given, stride=stride)]
        x, w = (array.permute(0, 3, 1, 2) for array in given)  # a view: channels last in memory
        return [lambda: convolve(x, w, stride=stride).permute(0, 2, 3, 1)]

    def ordered(outer: int, depth: int, height: int, width: int) -> Shape:
        return (outer, height, width, depth) if channels_last else (outer, depth, height, width)

    order = "channels last" if channels_last else "channels first"
    return _workload(
        ("convolution", "bf16->bf16", f"{channels}-{filters}.{side}.{window}s{stride}", order),
        (
            ("x", BF16, ordered(images, channels, padded, padded)),
            ("w", BF16, ordered(filters, channels, window, window)),
        ),
        (BF16, ordered(images, filters, positions, positions)),
        build,
        DeviceProblem(by_torch),
        2 * images * filters * positions**2 * channels * window**2,
    )


def of_rows(rows: int, columns: int) -> Iterator[Workload]:
    """Operations on rows, which memory bounds."""
    size, whole = f"{rows}x{columns}", (rows, columns)
    for types, element in (("f32", F32), ("bf16", BF16)):
        x = ("x", element, whole)

        def add(torch: Any, given: Sequence[Any], y: Any) -> list[Callable[[], Any]]:
            return [lambda: torch.add(*given, out=y)]

        def softmax(torch: Any, given: Sequence[Any], y: Any) -> list[Callable[[], Any]]:
            return [lambda: torch.softmax(given[0], 1, out=y)]

        def norm(torch: Any, given: Sequence[Any], _: Any) -> list[Callable[[], Any]]:
            return [lambda: torch.nn.functional.layer_norm(given[0], (columns,), given[1], given[2], 1e-5)]

        def total(torch: Any, given: Sequence[Any], y: Any) -> list[Callable[[], Any]]:
            return [lambda: torch.sum(given[0], 1, keepdim=True, out=y)]

        pair, parts = (x, ("z", element, whole)), (x, ("scale", element, (columns,)), ("shift", element, (columns,)))
        yield _bound(("add", types, size, ""), pair, (element, whole), Graph.add, add)
        yield _bound(("softmax", types, size, ""), (x,), (element, whole), Graph.softmax, softmax)
        yield _bound(
            ("layernorm", types, size, ""),
            parts,
            (element, whole),
            Graph.layer_norm,
            norm,
        )
        column = (element, (rows, 1))
        yield _bound(("rowsum", types, size, ""), (x,), column, _row_sums, total)


def _row_sums(g: Graph, x: Value) -> Value:
    return g.sum(x, 1, keep=True)


def _bound(
    key: tuple[str, str, str, str],
    operands: tuple[tuple[str, Element, Shape], ...],
    result: tuple[Element, Shape],
    build: Callable[..., Value],
    torch: Peer,
) -> Workload:
    return _workload(key, operands, result, build, DeviceProblem(torch), 0)


def _workload(
    key: tuple[str, str, str, str],
    operands: tuple[tuple[str, Element, Shape], ...],
    result: tuple[Element, Shape],
    build: Callable[..., Value],
    problem: DeviceProblem,
    operations: int,
) -> Workload:
    """A workload of a graph; without operations, memory bounds it."""
    element, shape = result
    row, types, size, variant = key

    def text() -> str:
        graph = Graph("work")
        values = [graph.parameter(name, extents, _DTYPES[kind]) for name, kind, extents in operands]
        graph.output(build(graph, *values), "y")
        return graph.text()

    buffers = (
        *(WorkloadBuffer(name, kind, extents) for name, kind, extents in operands),
        WorkloadBuffer("y", element, shape, output=True),
    )
    traffic = sum(prod(buffer.shape) * buffer.element.bytes for buffer in buffers)
    accumulator = S32 if element is S32 else F64 if element is F64 else F32
    first = operands[0][1]
    return Workload(
        row=row,
        types=types,
        size=size,
        variant=variant,
        buffers=buffers,
        text=text,
        expected=None,
        operations=operations or traffic,
        traffic=traffic,
        peak=(first, first, accumulator) if operations else MemoryTraffic(traffic // 2, 1, 1),
        problem=problem,
    )
