"""Elementwise sums, products and functions; softmax, sums and maxima of rows. Memory bounds most of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from tlx.intrinsics.numpy_types import Array
from tlx.ir.values import Value
from tlx.tuning.workload import (
    BF16,
    F32,
    Element,
    ElementwiseCheck,
    MemoryTraffic,
    PointwiseProblem,
    Workload,
    WorkloadBuffer,
    WorkloadBuilder,
    dense_tensor_type,
)

_COUNTS: Final = {"1K": 1 << 10, "16K": 1 << 14, "256K": 1 << 18, "1M": 1 << 20, "4M": 1 << 22, "16M": 1 << 24}
_ROW_LENGTHS: Final = {"1K": 128, "16K": 128, "256K": 1024, "1M": 1024, "4M": 1024, "16M": 1024}
_ELEMENTS: Final = {"f32": F32, "bf16": BF16}
INPUTS: Final = {"add": 2, "muladd": 3, "tanh": 1, "exp": 1, "sigmoid": 1}
ROWS: Final = ("softmax", "rowsum", "rowmax")


def pointwise_workloads() -> Iterator[Workload]:
    """All elementwise workloads and row reductions of the table."""
    for function in INPUTS:
        for types in _ELEMENTS:
            for size, count in _COUNTS.items():
                yield pointwise(function, types, count, size)
    for function in ROWS:
        for types in _ELEMENTS:
            for size, count in _COUNTS.items():
                yield of_rows(function, types, count // _ROW_LENGTHS[size], _ROW_LENGTHS[size], size)


def pointwise(function: str, types: str, count: int, size: str = "") -> Workload:
    """`y = function(x0, x1, ...)` on `count` elements."""
    element = _ELEMENTS[types]
    inputs = tuple(WorkloadBuffer(f"x{i}", element, (count,)) for i in range(INPUTS[function]))
    buffers = (WorkloadBuffer("y", element, (count,), output=True), *inputs)
    traffic = sum(buffer.bytes for buffer in buffers)
    return Workload(
        row=function,
        types=types,
        size=size or str(count),
        buffers=buffers,
        text=lambda: _pointwise_text(function, buffers),
        expected=lambda arrays: _EXPECTED[function](element, [element.widen(arrays[b.name]) for b in inputs]),
        operations=traffic,
        traffic=traffic,
        peak=MemoryTraffic(buffers[0].bytes, len(inputs), 1),
        problem=PointwiseProblem(function, count, element),
    )


def of_rows(function: str, types: str, rows: int, columns: int, size: str = "") -> Workload:
    """`softmax`, `rowsum` or `rowmax` of each row."""
    element = _ELEMENTS[types]
    buffers = (
        WorkloadBuffer("y", element, (rows, columns if function == "softmax" else 1), output=True),
        WorkloadBuffer("x", element, (rows, columns)),
    )
    traffic = sum(buffer.bytes for buffer in buffers)
    return Workload(
        row=function,
        types=types,
        size=size or f"{rows}x{columns}",
        buffers=buffers,
        text=lambda: _rows_text(function, buffers),
        expected=lambda arrays: _rows_expected(function, element.widen(arrays["x"])),
        operations=traffic,
        traffic=traffic,
        peak=MemoryTraffic(buffers[1].bytes, 1, int(function == "softmax")),
        problem=PointwiseProblem(function, rows * columns, element, columns),
    )


def _pointwise_text(function: str, buffers: tuple[WorkloadBuffer, ...]) -> str:
    b = WorkloadBuilder(buffers)
    type_ = dense_tensor_type(buffers[0].element, buffers[0].shape)
    tokens = [b.load_buffer(buffer.name) for buffer in buffers[1:]]
    if function in {"add", "muladd"}:
        x: list[Value] = [b.tovector(token) for token in tokens]
        product = b.binary("fmul", x[0], x[1]) if function == "muladd" else x[0]
        value = b.binary("fadd", product, x[-1])
    else:
        value = b.unary(function, tokens[0], type_)
    return b.store_buffer("y", b.typeinfo(value, type_))


def _rows_text(function: str, buffers: tuple[WorkloadBuffer, ...]) -> str:
    b = WorkloadBuilder(buffers)
    out, x = buffers
    rows, columns = x.shape
    whole, column = dense_tensor_type(x.element, x.shape), dense_tensor_type(x.element, (rows, 1))
    token = b.load_buffer("x")
    if function != "softmax":
        operation = {"rowsum": "add", "rowmax": "max"}[function]
        return b.store_buffer("y", b.typeinfo(b.reduce(operation, token, (1, columns), result=column), column))

    def stretched(operation: str, of: Value) -> Value:
        each = b.reduce(operation, of, (1, columns), result=column)
        return b.broadcast(b.typeinfo(each, column), x.shape, (0, 1), whole)

    difference = b.binary("fsub", b.tovector(token), stretched("max", token))
    exponential = b.unary("exp", b.typeinfo(difference, whole), whole)
    sums = stretched("add", b.typeinfo(exponential, whole))
    return b.store_buffer(out.name, b.typeinfo(b.binary("fdiv", exponential, sums), whole))


def _rounded(element: Element, steps: int) -> int:
    """Relative error of `steps` roundings to the element type, in units of float's."""
    return steps << (24 - element.precision)


def _sum(element: Element, x: list[Array]) -> ElementwiseCheck:
    return ElementwiseCheck(x[0] + x[1], np.abs(x[0] + x[1]), _rounded(element, 1))


def _product_sum(element: Element, x: list[Array]) -> ElementwiseCheck:
    return ElementwiseCheck(x[0] * x[1] + x[2], np.abs(x[0] * x[1]) + np.abs(x[2]), _rounded(element, 2))


def _function(compute: Callable[[Array], Array]) -> Callable[[Element, list[Array]], ElementwiseCheck]:
    def expected(element: Element, x: list[Array]) -> ElementwiseCheck:
        values = compute(x[0])
        return ElementwiseCheck(values, np.abs(values), _rounded(element, 4))

    return expected


_EXPECTED: Final[dict[str, Callable[[Element, list[Array]], ElementwiseCheck]]] = {
    "add": _sum,
    "muladd": _product_sum,
    "tanh": _function(np.tanh),
    "exp": _function(np.exp),
    "sigmoid": _function(lambda x: 1 / (1 + np.exp(-x))),
}


def _rows_expected(function: str, x: Array) -> ElementwiseCheck:
    if function == "rowmax":
        return ElementwiseCheck(x.max(1, keepdims=True), None)
    if function == "rowsum":
        return ElementwiseCheck(x.sum(1, keepdims=True), np.abs(x).sum(1, keepdims=True), x.shape[1] << 16)
    powers = np.exp(x - x.max(1, keepdims=True))
    values = powers / powers.sum(1, keepdims=True)
    return ElementwiseCheck(values, values, x.shape[1] << 10)
