"""Compare a graph of one operation with numpy, by the evaluator and as machine code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast, overload

import numpy as np

from tlx.graph import Graph, Value

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDINGS = {2: 2**-7, 4: 2e-6, 8: 1e-13}


def names(dtype: np.dtype[Any]) -> str:
    return dtype.name


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(-9 if dtype.kind == "i" else 0, 10, shape).astype(dtype)
    return rng.uniform(-2, 2, shape).astype(dtype)


@overload
def check(
    build: Callable[[Any, Any], Value],
    reference: Callable[[Any], Any],
    x: Array,
    /,
    *,
    tolerance: float | None = None,
    terms: int = 1,
) -> Value: ...
@overload
def check(
    build: Callable[[Any, Any, Any], Value],
    reference: Callable[[Any, Any], Any],
    x: Array,
    y: Array,
    /,
    *,
    tolerance: float | None = None,
    terms: int = 1,
) -> Value: ...
def check(
    build: Callable[..., Value],
    reference: Callable[..., Any],
    *arrays: Array,
    tolerance: float | None = None,
    terms: int = 1,
) -> Value:
    """Compare a graph of parameters with numpy; floats are compared in double precision, relative to `terms`."""
    graph = Graph("f")
    value = build(graph, *(graph.parameter(f"x{k}", a.shape, a.dtype) for k, a in enumerate(arrays)))
    graph.output(value)
    wide = [a.astype(np.float64) if a.dtype.kind not in "biu" else a for a in arrays]
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(*wide))
    assert value.shape == expected.shape
    for result in (graph.evaluate(*arrays), graph.compile()(*arrays)):
        assert result.shape == expected.shape
        assert result.dtype == value.dtype
        if value.dtype.kind in "biu":
            np.testing.assert_array_equal(result, expected.astype(value.dtype))
        else:
            bound = ROUNDINGS[value.dtype.itemsize] if tolerance is None else tolerance
            actual = result.astype(np.float64)
            np.testing.assert_allclose(actual, expected, rtol=bound * 4, atol=bound * terms)
    return value


def same(
    build: Callable[..., Any], expected: Sequence[Any], *arrays: Array, targets: Sequence[str] = ("native",)
) -> Graph:
    """Compare the results of a graph of parameters with what is expected: by the evaluator and as machine code."""
    graph = Graph("f")
    values = build(graph, *(graph.parameter(f"x{k}", a.shape, a.dtype) for k, a in enumerate(arrays)))
    for value in _several(values):
        graph.output(value)
    for function in (graph.evaluate, *(graph.compile(target) for target in targets)):
        results = _several(function(*arrays))
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            assert result.shape == np.shape(wanted)
            if result.dtype.kind in "biu":
                np.testing.assert_array_equal(result, wanted)
            else:
                bound = ROUNDINGS[result.dtype.itemsize]
                np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=bound * 20, atol=bound)
    return graph


def _several(items: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", items) if isinstance(items, (tuple, list)) else (items,)
