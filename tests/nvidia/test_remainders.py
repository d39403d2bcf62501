"""Remainders of floats on a GPU, whose code LLVM would not make exact, and functions of the C library."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import tlx
from tests.nvidia.programs import lowered
from tlx.diagnostics import LoweringError

Run = Callable[..., list[Any]]
DTYPES: Final[dict[str, Any]] = {
    "bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32, "float64": np.float64,
}  # fmt: skip


def remainder(x: float, y: float) -> float:
    """C's `fmod`, by exact fractions."""
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    if math.isinf(y):
        return x
    exact = Fraction(abs(x)) % Fraction(abs(y))
    return math.copysign(float(exact), x)


def operands(dtype: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Pairs of special numbers, of close ones, and of bits at random."""
    facts = cast("Any", ml_dtypes.finfo(dtype))
    least, largest = float(facts.smallest_subnormal), float(facts.max)
    special = [0.0, -0.0, 1.0, -1.0, least, -3 * least, 7 * least, float(facts.smallest_normal), largest, -largest]
    special += [math.inf, -math.inf, math.nan, 1 / 3, -0.1, 5.5, 1e-3, 100.0, 1 + float(facts.eps)]
    numbers = np.array(special, np.float64).astype(dtype)
    x, y = (part.ravel() for part in np.meshgrid(numbers, numbers))
    bits = np.dtype(f"u{np.dtype(dtype).itemsize}")
    random = np.random.default_rng(4).integers(0, np.iinfo(bits).max, (2, 600), bits, endpoint=True).view(dtype)
    close = (random[0].astype(np.float64) * 0.7).astype(dtype)
    return np.concatenate([x, random[0], random[0]]), np.concatenate([y, random[1], close])


@pytest.mark.parametrize("dtype", list(DTYPES))
def test_remainders(run: Run, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x, y = operands(DTYPES[dtype])
        want = [remainder(float(a), float(b)) for a, b in zip(x, y, strict=True)]
        expected = np.array(want, np.float64).astype(x.dtype)
    g = tlx.Graph("f")
    g.output(g.parameter("x", x.shape, dtype) % g.parameter("y", y.shape, dtype))
    assert "frem" not in lowered(g.text())
    got = run(g.text(), x, y, np.zeros_like(x))[-1]
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    is_nan = np.isnan(expected.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(got.astype(np.float64)), is_nan)
    np.testing.assert_array_equal(got.view(unsigned)[~is_nan], expected.view(unsigned)[~is_nan])


def test_functions_without_code_are_refused() -> None:
    g = tlx.Graph("f")
    x = g.parameter("x", (64,))
    g.output(x**x)
    with pytest.raises(LoweringError, match="pow is not implemented for targets with grids"):
        lowered(g.text())
