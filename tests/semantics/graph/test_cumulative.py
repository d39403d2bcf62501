"""Cumulative operations and long ranges of `tlx.graph` against numpy: by the evaluator and as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.semantics.graph.checks import Array, check, names, random, same
from tlx.diagnostics import UsageError
from tlx.graph import Graph, Value

UFUNCS: dict[str, Any] = {"sum": np.add, "product": np.multiply, "max": np.maximum, "min": np.minimum}
CASES = [((1,), 0), ((9,), 0), ((3, 7), 1), ((6, 1, 5), 0), ((2, 8, 3), 1), ((2, 2), -1)]


def cumulated(x: Array, name: str, axis: int, *, reverse: bool, exclusive: bool) -> Array:
    """The operation by numpy."""
    turned = np.flip(x, axis) if reverse else x
    result = UFUNCS[name].accumulate(turned, axis, dtype=x.dtype)
    if exclusive:
        limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        least, most = (limits.min, limits.max) if limits else (-np.inf, np.inf)
        first = {"sum": 0, "product": 1, "max": least, "min": most}[name]
        result = np.delete(np.insert(result, 0, first, axis), -1, axis)
    return np.flip(result, axis) if reverse else result


@pytest.mark.parametrize("name", UFUNCS)
@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.int16), np.dtype(np.uint64)], ids=names)
def test_cumulative(name: str, dtype: np.dtype[Any]) -> None:
    for k, (shape, axis) in enumerate(CASES):
        x = random(np.random.default_rng(k), shape, dtype)
        options = {"reverse": k % 2 == 1, "exclusive": k % 3 == 0}

        def build(g: Any, a: Value, axis: int = axis, options: Any = options) -> Any:
            return g.cumulative(name, a, axis, **options)

        same(build, (cumulated(x, name, axis, **options),), x)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(bfloat16)], ids=names)
def test_narrow_floats_are_rounded_once(dtype: np.dtype[Any]) -> None:
    x = random(np.random.default_rng(1), (3, 50), dtype)
    check(lambda g, a: g.cumsum(a, 1), lambda a: np.cumsum(a, 1), x)


def test_nan_stays() -> None:
    x = np.array([1, 3, np.nan, 2], np.float32)

    def build(g: Any, a: Value) -> Any:
        return g.cumulative("max", a, 0), g.cumulative("min", a * 1.0, 0, reverse=True)

    same(build, ([1, 3, np.nan, np.nan], [np.nan, np.nan, np.nan, 2]), x, targets=("native", "generic", "avx2"))


def test_cumulative_operations_of_views() -> None:
    x = random(np.random.default_rng(2), (4, 6), np.dtype(np.float32))
    check(lambda g, a: g.cumsum(a.T[1:5], 1), lambda a: np.cumsum(a.T[1:5], 1), x)
    check(lambda g, a: g.cumsum(g.broadcast(a, (2, 4, 6)), 0), lambda a: np.stack([a, 2 * a]), x)


@pytest.mark.parametrize("dtype", [np.dtype(t) for t in ("i1", "i4", "u8", "f4")], ids=names)
def test_long_ranges_are_short_text(dtype: np.dtype[Any]) -> None:
    graph = Graph()
    graph.output(graph.iota((2, 10_001), 1, dtype))
    assert len(graph.text()) < 100_000
    for result in (graph.evaluate(), graph.compile()()):
        np.testing.assert_array_equal(result, np.tile(np.arange(10_001).astype(dtype), (2, 1)))


def test_errors() -> None:
    graph = Graph()
    with pytest.raises(UsageError, match="cumulative: 'mean' is not one of sum, product, max, min"):
        graph.cumulative("mean", graph.parameter("x", (3,)), 0)
    with pytest.raises(UsageError, match="sum: the operand has type bool: convert it to an integer first"):
        graph.cumsum(graph.parameter("y", (3,), "bool"), 0)
