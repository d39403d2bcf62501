"""Compare functions of JAX, compiled by TLX, with JAX itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tlx
from tests.support.tools import require_module

jax: Any = require_module("jax")
ROUNDINGS = {2: 2**-7, 4: 4e-6, 8: 1e-13}


def check(function: Callable[..., Any], *arguments: Any, tolerance: float | None = None, **settings: Any) -> None:
    """Compare the results of a function; floats relative to the largest element of each result, and of all."""
    expected, structure = jax.tree.flatten(jax.jit(function)(*arguments))
    actual, structure_of_actual = jax.tree.flatten(tlx.jax.jit(function, **settings)(*arguments))
    assert structure_of_actual == structure
    floats = [np.asarray(x, np.float64) for x in expected if not is_exact(x)]
    largest = max((float(np.nanmax(np.abs(x[np.isfinite(x)]), initial=0)) for x in floats), default=0)
    for x, y in zip(expected, actual, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if is_exact(x):
            np.testing.assert_array_equal(np.asarray(x), y)
            continue
        bound = ROUNDINGS[y.dtype.itemsize] if tolerance is None else tolerance
        wide = np.asarray(x, np.float64)
        scale = float(np.nanmax(np.abs(wide[np.isfinite(wide)]), initial=0)) + 0.1 * largest
        np.testing.assert_allclose(y.astype(np.float64), wide, rtol=0, atol=bound * scale)


def check_bfloat(function: Callable[..., Any], *arguments: Any) -> None:
    """Compare results in bfloat with those in float: TLX rounds no worse than JAX does."""

    def widened(x: Any) -> Any:
        return x.astype("float32") if x.dtype.name == "bfloat16" else x

    exact = jax.tree.leaves(jax.jit(function)(*jax.tree.map(widened, arguments)))
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    actual = jax.tree.leaves(tlx.jax.jit(function)(*arguments))
    for x, y, z in zip(exact, expected, actual, strict=True):
        assert (y.shape, y.dtype) == (z.shape, z.dtype)
        wide = np.asarray(x, np.float64)
        error_of_jax = np.abs(np.asarray(y, np.float64) - wide).max()
        error = np.abs(z.astype(np.float64) - wide).max()
        assert error <= 1.5 * error_of_jax + 2**-8 * np.abs(wide).max()


def is_exact(array: Any) -> bool:
    return np.dtype(array.dtype).kind in "biu"
