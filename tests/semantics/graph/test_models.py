"""Whole models of `tlx.graph` against numpy: views, products, reductions and functions that read each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx.graph import Graph, Value

S, H, E = 6, 2, 4  # rows, heads, elements of a head
D = H * E


class Weights:
    """Random weights, for a graph and for numpy."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(6)

    def __call__(self, *shape: int) -> Any:
        return self._rng.uniform(-0.5, 0.5, shape).astype(np.float32)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def norm(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def gelu(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def same(graph: Graph, arrays: list[Any], expected: Any) -> None:
    for result in (graph.evaluate(*arrays), graph.compile()(*arrays)):
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_transformer_block() -> None:
    make = Weights()
    x, qkv, out, up, down = make(2, S, D), make(D, 3 * D), make(D, D), make(D, 4 * D), make(4 * D, D)

    graph = Graph("block")
    value = graph.parameter("x", x.shape)
    parts = graph.layer_norm(value) @ graph.weight("qkv", qkv)
    q, k, v = (parts[..., i * D : (i + 1) * D].reshape(2, S, H, E) for i in range(3))
    scores = graph.dot_general(q, k, ([3], [3]), ([0, 2], [0, 2])) * 0.5
    causal = graph.iota((S, S), 0) >= graph.iota((S, S), 1)
    chosen = graph.softmax(graph.where(causal, scores, -1e9))
    heads = graph.dot_general(chosen, v, ([3], [1]), ([0, 1], [0, 2])).transpose(0, 2, 1, 3).reshape(2, S, D)
    first = value + heads @ graph.weight("out", out)
    graph.output(first + graph.gelu(graph.layer_norm(first) @ graph.weight("up", up)) @ graph.weight("down", down))

    wide = np.split((norm(x) @ qkv).reshape(2, S, 3, H, E).transpose(2, 0, 3, 1, 4), 3)
    a, b, c = (part[0] for part in wide)
    weights = softmax(np.where(np.tri(S, dtype=bool), a @ b.transpose(0, 1, 3, 2) * 0.5, -1e9))
    middle = x + (weights @ c).transpose(0, 2, 1, 3).reshape(2, S, D) @ out
    same(graph, [x], middle + gelu(norm(middle) @ up) @ down)


def test_residual_network() -> None:
    """Channels last: convolution, scale, pooling, a strided shortcut, and a classifier on the mean."""
    make = Weights()
    x, first, second, short, last = make(2, 8, 8, 3), make(3, 3, 3, 4), make(3, 3, 4, 5), make(1, 1, 4, 5), make(5, 7)
    layouts = ("NHWC", "HWIO", "NHWC")

    graph = Graph("resnet")
    value = graph.parameter("x", x.shape)
    stem = graph.relu(graph.convolution(value, graph.weight("first", first), 1, "same", layouts=layouts) + 0.1)
    pooled = graph.reduce_window("max", stem, (1, 2, 2, 1), (1, 2, 2, 1))
    inner = graph.convolution(pooled, graph.weight("second", second), 2, [(1, 1), (1, 1)], layouts=layouts)
    joined = inner + graph.convolution(pooled, graph.weight("short", short), 2, layouts=layouts)
    graph.output(graph.softmax(graph.mean(graph.relu(joined), (1, 2)) @ graph.weight("last", last)))

    def convolved(a: Any, w: Any, border: int, step: int) -> Any:
        padded = np.pad(a, ((0, 0), (border, border), (border, border), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[:2], (1, 2))[:, ::step, ::step]
        return np.einsum("nxyckl,klco->nxyo", windows, w)

    base = np.maximum(convolved(x, first, 1, 1) + 0.1, 0)
    small = base.reshape(2, 4, 2, 4, 2, 4).max((2, 4))
    total = np.maximum(convolved(small, second, 1, 2) + convolved(small, short, 0, 2), 0)
    same(graph, [x], softmax(total.mean((1, 2)) @ last))


def test_training_step() -> None:
    """Gradients of a layer by hand: products with transposed operands, several outputs."""
    make = Weights()
    x, w, y = make(8, 6), make(6, 3), make(8, 3)

    graph = Graph("step")
    values: list[Value] = [graph.parameter(name, a.shape) for name, a in (("x", x), ("w", w), ("y", y))]
    rows, weight, wanted = values
    error = graph.tanh(rows @ weight) - wanted
    slope = error * (1.0 - graph.tanh(rows @ weight) ** 2.0)
    graph.output(weight - rows.T @ slope * 0.1, "w.next")
    graph.output(graph.sum(error * error), "loss")

    difference = np.tanh(x @ w) - y
    expected = w - 0.1 * x.T @ (difference * (1 - np.tanh(x @ w) ** 2)), (difference**2).sum()
    for results in (graph.evaluate(x, w, y), graph.compile()(x, w, y)):
        for result, reference in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, reference, rtol=1e-4, atol=1e-5)
