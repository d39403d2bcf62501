"""Sorts of `tlx.graph` against numpy, in total order: by the evaluator and as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.semantics.graph.checks import Array, names, same
from tlx.diagnostics import UsageError
from tlx.graph import Graph, Value

TYPES = [np.dtype(t) for t in (bool, "i1", "u2", "i4", "i8", "u8", np.float16, bfloat16, np.float32, np.float64)]
LONG = 120  # more than what is sorted by insertion


def bits(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Random bits, with NaNs and infinities of both signs, or few different numbers."""
    if dtype.kind == "b" or rng.integers(2):
        return rng.integers(0, 5, shape).astype(dtype)
    return rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8).view(dtype)[..., 0].copy()


def rank(x: Array) -> Array:
    """Integers in the order of the elements."""
    if x.dtype.kind in "biu":
        return x if x.dtype.itemsize == 8 else x.astype(np.int64)
    numbers = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    return np.where(numbers < 0, numbers ^ np.int64(2 ** (8 * x.dtype.itemsize - 1) - 1), numbers)


@pytest.mark.parametrize("dtype", TYPES, ids=names)
@pytest.mark.parametrize(("shape", "axis"), [((1, 37), -1), ((2, LONG, 2), 1)])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(shape: tuple[int, ...], axis: int, dtype: np.dtype[Any], descending: bool) -> None:
    rng = np.random.default_rng(len(shape) + 2 * descending)
    x, y = bits(rng, shape, dtype), np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    order = np.argsort(~rank(x) if descending else rank(x), axis=axis, kind="stable")
    graph = Graph()
    a, b = graph.parameter("a", shape, dtype), graph.parameter("b", shape, "int16")
    for value in (*graph.sort(a, b, axis=axis, descending=descending), graph.argsort(a, axis, descending=descending)):
        graph.output(value)
    for keys, values, positions in (graph.evaluate(x, y), graph.compile()(x, y)):
        assert keys.tobytes() == np.take_along_axis(x, order, axis).tobytes()
        np.testing.assert_array_equal(values, np.take_along_axis(y, order, axis))
        np.testing.assert_array_equal(positions, order)


@pytest.mark.parametrize("length", [30, LONG])
def test_several_keys(length: int) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 3, length).astype(np.float32), rng.integers(-2, 3, length)
    z = np.arange(length, dtype=np.uint8)
    order = np.lexsort((z, y, x))

    def build(g: Any, *operands: Value) -> Any:
        return g.sort(*operands, keys=2)

    same(build, (x[order], y[order], z[order]), x, y, z, targets=("native", "generic", "avx2"))


def test_top_k() -> None:
    x = np.array([[3, 1, 3, np.nan, 2], [0, -1, 5, 5, -np.inf]], np.float32)

    def build(g: Any, a: Value) -> Any:
        return g.top_k(a * 1.0, 3)

    same(build, ([[np.nan, 3, 3], [5, 5, 0]], [[3, 0, 2], [2, 3, 0]]), x)


def test_sort_of_views_in_a_loop() -> None:
    """Rows are sorted by their reversed prefix, one in each iteration."""
    x = np.random.default_rng(2).standard_normal((4, 6)).astype(np.float32)

    def build(g: Any, a: Value) -> Any:
        def body(i: Value, v: Value) -> Any:
            row = g.dynamic_slice(v, (i, 0), (1, 6))
            return i + 1, g.dynamic_update_slice(v, g.sort(row)[0], (i, 0))

        def condition(i: Value, _: Value) -> Value:
            return i < 3

        return g.while_loop(condition, body, 0, a)[1], g.sort(a.T[1:4], axis=0)[0]

    expected = x.copy()
    expected[:3] = np.sort(expected[:3])
    same(build, (expected, np.sort(x.T[1:4], 0)), x)


@pytest.mark.parametrize(("one", "other"), [("f4", "i4"), ("i2", "f2"), ("f8", "u8"), ("u4", "i4"), ("i8", "f8")])
def test_bitcast(one: str, other: str) -> None:
    x = np.random.default_rng(3).integers(0, 100, (3, 7)).astype(one)

    def build(g: Any, a: Value) -> Any:
        return g.bitcast(g.bitcast(a + a, other), one), g.bitcast(g.bitcast(a, "uint8"), other)

    same(build, (x + x, x.view(other)), x)


def test_bitcast_to_parts() -> None:
    x = np.random.default_rng(4).integers(0, 2**31, (3, 4)).astype(np.int32)

    def build(g: Any, a: Value) -> Any:
        return g.bitcast(a, "uint16"), g.bitcast(a.T.reshape(2, 3, 2), "int64"), g.bitcast(a[:2, 1], "int8")

    turned = np.ascontiguousarray(x.T).reshape(2, 3, 2)
    parts = np.ascontiguousarray(x[:2, 1]).view(np.int8).reshape(2, 4)
    same(build, (x.view(np.uint16).reshape(3, 4, 2), turned.view(np.int64)[..., 0], parts), x)


def test_errors() -> None:
    graph = Graph()
    x = graph.parameter("x", (2, 3))
    for wrong, message in (
        (lambda: graph.sort(x, x[:1]), "sort: shapes (2, 3) and (1, 3) differ"),
        (lambda: graph.sort(x, keys=2), "sort: keys is 2: expected 1 to 1, the number of operands"),
        (lambda: graph.sort(x, axis=2), "sort: axis 2 is not a dimension of a tensor of rank 2"),
        (lambda: graph.top_k(x, 4), "top_k: k is 4: expected 0 to 3, the extent of the last dimension"),
        (lambda: graph.bitcast(x, "int64"), "bitcast: the last dimension of (2, 3) must be 2 for int64"),
        (lambda: graph.bitcast(x, "bool"), "bitcast: float32 and bool: a bool has no bits, convert it"),
    ):
        with pytest.raises(UsageError) as caught:
            wrong()
        assert caught.value.message == f"tlx.graph: {message}"
