"""Floats of 8 bits in graphs: conversions, moves, products, and the errors of other operations."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2

from tests.semantics.graph.checks import Array
from tlx.diagnostics import UsageError
from tlx.graph import Graph

SMALL: Final[list[Any]] = [float8_e4m3fn, float8_e5m2]
OTHERS: Final[list[Any]] = [np.float16, bfloat16, np.float32, np.float64]
EVERY: Final = np.arange(256, dtype=np.uint8).reshape(16, 16)


def equal_floats(actual: Array, expected: Array) -> None:
    """Check that arrays are equal, or NaN at the same places."""
    assert actual.dtype == expected.dtype
    with np.errstate(invalid="ignore"):  # signalling NaN
        np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("target", ["native", "evaluator"])
@pytest.mark.parametrize("small", SMALL)
def test_conversions(small: Any, target: str) -> None:
    g = Graph("f")
    x = g.parameter("x", (16, 16), small)
    kinds: list[Any] = [*SMALL, *OTHERS, np.int32, np.uint8, np.bool_]
    for kind in kinds:
        g.output(g.convert(x, kind))
    array = EVERY.view(small)
    finite = np.where(np.isfinite(array.astype(np.float32)), array, np.zeros((), small))
    results = g.evaluate(finite) if target == "evaluator" else g.compile(target)(finite)
    for kind, result in zip(kinds, results, strict=True):
        if np.dtype(kind).kind in "iu":  # beyond an integer type, TLX clamps
            info = np.iinfo(kind)
            np.testing.assert_array_equal(result, np.clip(finite.astype(np.float64), info.min, info.max).astype(kind))
            continue
        equal_floats(result, finite.astype(np.float32).astype(kind))
    every = g.compile("native")(array)
    equal_floats(every[len(SMALL) + 2], array.astype(np.float32))


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize("other", [*OTHERS, np.int32, np.uint16, np.bool_])
def test_conversions_to_small_floats(other: Any, small: Any) -> None:
    g = Graph("f")
    g.output(g.convert(g.parameter("x", (8, 40), other), small))
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((8, 40)) * 2.0 ** rng.integers(-12, 18, (8, 40))
    with np.errstate(all="ignore"):
        x = np.abs(numbers).astype(other) if np.dtype(other).kind in "bu" else numbers.astype(other)
        want = x.astype(np.float32).astype(small)
    equal_floats(g.compile("native")(x), want)


@pytest.mark.parametrize("small", SMALL)
def test_moves_and_constants(small: Any) -> None:
    g = Graph("f")
    x = g.parameter("x", (16, 16), small)
    constant = np.array([1, -2, 0.5, np.nan], small)
    moved = [
        g.transpose(x),
        g.slice(x, (1, 2), (9, 14), (2, 3)),
        g.concatenate([x, g.reverse(x, [1])], 0),
        g.pad(x, [1, 0], [0, 2], number=1.5),
        g.where(np.arange(16) % 3 == 0, x, -1.0),
        g.constant(constant),
        g.full((3, 5), 0.25, small),
    ]
    for value in moved:
        g.output(value)
    array = EVERY.view(small)
    bytes_ = [result.view(np.uint8) for result in g.compile("native")(array)]
    chosen = np.where(np.arange(16) % 3 == 0, EVERY, np.array(-1, small).view(np.uint8))
    np.testing.assert_array_equal(bytes_[0], EVERY.T)
    np.testing.assert_array_equal(bytes_[1], EVERY[1:9:2, 2:14:3])
    np.testing.assert_array_equal(bytes_[2], np.concatenate([EVERY, EVERY[:, ::-1]]))
    fill = int(np.array(1.5, small).view(np.uint8))
    np.testing.assert_array_equal(bytes_[3], np.pad(EVERY, ((1, 0), (0, 2)), constant_values=fill))
    np.testing.assert_array_equal(bytes_[4], chosen)
    np.testing.assert_array_equal(bytes_[5], constant.view(np.uint8))
    np.testing.assert_array_equal(bytes_[6], np.full((3, 5), 0.25, small).view(np.uint8))


@pytest.mark.parametrize("result", [None, np.float16, bfloat16, np.float32, np.float64])
@pytest.mark.parametrize(("left", "right"), [(x, y) for x in SMALL for y in SMALL])
def test_products(left: Any, right: Any, result: Any) -> None:
    g = Graph("f")
    x, y = g.parameter("x", (20, 48), left), g.parameter("y", (48, 24), right)
    g.output(g.matmul(x, y, dtype=result))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(kind) for shape, kind in (((20, 48), left), ((48, 24), right)))
    want = a.astype(np.float64) @ b.astype(np.float64)
    with np.errstate(all="ignore"):
        equal_floats(g.compile("native")(a, b), want.astype(np.float32).astype(left if result is None else result))


@pytest.mark.parametrize("name", ["add", "exp", "maximum", "reduce", "sort", "convolution", "compare"])
def test_other_operations_are_refused(name: str) -> None:
    g = Graph("f")
    x = g.parameter("x", (1, 4, 4), float8_e5m2)
    calls = {
        "add": lambda: x + x,
        "exp": lambda: g.exp(x),
        "maximum": lambda: g.maximum(x, 1.0),
        "reduce": lambda: g.sum(x),
        "sort": lambda: g.sort(x),
        "convolution": lambda: g.convolution(x, x),
        "compare": lambda: g.equal(x, x),
    }
    with pytest.raises(UsageError, match="not defined for float8_e5m2: convert the operand first"):
        calls[name]()
