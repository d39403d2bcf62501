"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tlx.frontends.onnx.model import Array, Node
from tlx.frontends.onnx.operators.convolution import borders, spatial
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors

Borders = Sequence[tuple[int, int]]


def _windows(node: Node, x: Tensor) -> tuple[list[int], list[int], list[int], list[tuple[int, int]]]:
    """Extents, strides, dilations and padding of the windows; `ceil_mode` is padding at the end."""
    rank = len(x.shape) - 2
    window = spatial(node, "kernel_shape", rank)
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    padding = borders(node, x.shape[2:], reach, strides)
    if node.integer("ceil_mode", 0):
        for d, (extent, (low, high)) in enumerate(zip(x.shape[2:], padding, strict=True)):
            span = extent + low + high - reach[d]
            steps = -(-span // strides[d])
            if steps * strides[d] >= extent + low:  # a window must begin inside
                steps -= 1
            padding[d] = (low, high + max(0, steps * strides[d] - span))
    for extent, size, (low, high) in zip(x.shape[2:], reach, padding, strict=True):
        if size > extent + low + high:
            raise node.error(f"a window of {size} positions is larger than the padded input, {extent + low + high}")
    return window, strides, dilations, padding


def _reduced(
    t: Tensors, name: str, x: Tensor, window: list[int], strides: list[int], dilations: list[int], padding: Borders
) -> Tensor:
    """A reduction over windows of the spatial dimensions."""
    if max(dilations, default=1) == 1:
        return t.graph.reduce_window(name, t.value(x), [1, 1, *window], [1, 1, *strides], [(0, 0), (0, 0), *padding])
    number = float("-inf") if name == "max" else 0
    low, high = zip((0, 0), (0, 0), *padding, strict=True)
    padded = t.pad(x, low, high, number)
    binary = "maximum" if name == "max" else "add"
    result: Tensor | None = None
    for place in np.ndindex(*window):
        offsets = [k * d for k, d in zip(place, dilations, strict=True)]
        counts = [
            (e - (k - 1) * d - 1) // s + 1
            for e, k, d, s in zip(padded.shape[2:], window, dilations, strides, strict=True)
        ]
        stops = [o + (n - 1) * s + 1 for o, n, s in zip(offsets, counts, strides, strict=True)]
        part = t.slice(padded, [0, 0, *offsets], [*padded.shape[:2], *stops], [1, 1, *strides])
        result = part if result is None else t.binary(binary, result, part)
    assert result is not None
    return result


@operator("MaxPool", note="one output")
def max_pool(t: Tensors, node: Node, x: Tensor) -> Tensor:
    """The greatest element of each window."""
    if len(node.outputs) > 1 and node.outputs[1]:
        raise node.error("the indices of the greatest elements are not supported")
    window, strides, dilations, padding = _windows(node, x)
    return _reduced(t, "max", x, window, strides, dilations, padding)


@operator("AveragePool")
def average_pool(t: Tensors, node: Node, x: Tensor) -> Tensor:
    """The mean of each window; the padding counts or not."""
    window, strides, dilations, padding = _windows(node, x)
    total = _reduced(t, "sum", x, window, strides, dilations, padding)
    counted = node.integer("count_include_pad", 0)
    given = borders(node, x.shape[2:], [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)], strides)
    count: Array = np.ones((), np.float64)
    rank = len(window)
    for d, ((low, high), (whole_low, whole_high)) in enumerate(zip(given, padding, strict=True)):
        extent = x.shape[2 + d]
        valid = np.zeros(extent + whole_low + whole_high)
        first = 0 if counted else whole_low
        valid[first : whole_low + extent + (high if counted else 0)] = 1
        places = np.arange(total.shape[2 + d])[:, None] * strides[d] + np.arange(window[d])[None, :] * dilations[d]
        along = valid[places].sum(axis=1)
        count = count * along.reshape([-1 if k == d else 1 for k in range(rank)])
        _ = low
    if (count == count.flat[0]).all():
        return (
            t.multiply(total, 1 / float(count.flat[0])) if _is_exact(count) else t.divide(total, float(count.flat[0]))
        )
    return t.divide(total, count.astype(x.dtype))


def _is_exact(count: Array) -> bool:
    """Whether the reciprocal of a count is a power of two."""
    return math.frexp(float(count.flat[0]))[0] == 0.5


@operator("LpPool")
def lp_pool(t: Tensors, node: Node, x: Tensor) -> Tensor:
    """The norm of each window."""
    window, strides, dilations, padding = _windows(node, x)
    p = node.integer("p", 2)
    powers = t.unary("abs", x) if p == 1 else t.multiply(x, x) if p == 2 else _power(t, t.unary("abs", x), p)
    total = _reduced(t, "sum", powers, window, strides, dilations, padding)
    return _root(t, total, p)


def _power(t: Tensors, x: Tensor, p: float) -> Tensor:
    return t.binary("power", x, np.asarray(p, x.dtype))


def _root(t: Tensors, x: Tensor, p: int) -> Tensor:
    return x if p == 1 else t.unary("sqrt", x) if p == 2 else _power(t, x, 1 / p)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(t: Tensors, node: Node, x: Tensor) -> Tensor:
    """One window for each channel."""
    axes = list(range(2, len(x.shape)))
    if node.operator == "GlobalMaxPool":
        return t.reduce("max", x, axes, keep=True)
    if node.operator == "GlobalAveragePool":
        return _mean(t, x, axes)
    p = node.integer("p", 2)
    powers = t.unary("abs", x) if p == 1 else t.multiply(x, x) if p == 2 else _power(t, t.unary("abs", x), p)
    return _root(t, t.reduce("sum", powers, axes, keep=True), p)


def _mean(t: Tensors, x: Tensor, axes: list[int]) -> Any:
    return t.graph.mean(t.value(x), axes, keep=True)
