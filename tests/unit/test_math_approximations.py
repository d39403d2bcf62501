"""The polynomials are as near to their functions as the docstrings say, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import mpmath as _mpmath
import pytest

from tlx.lower.legalize.math import exponential

mpmath: Any = _mpmath  # has no types
Real = Any
_POINTS: Final = 600


def largest(error: Callable[[Real], Real], low: float, high: float) -> float:
    """log2 of the largest error on evenly spread points."""
    with mpmath.workprec(200):
        points = (low + (high - low) * mpmath.mpf(i) / _POINTS for i in range(_POINTS + 1))
        return float(mpmath.log(max(abs(error(x)) for x in points), 2))


def polynomial(coefficients: Sequence[float], x: Real) -> Real:
    return mpmath.fsum(c * x**power for power, c in enumerate(coefficients))


@pytest.mark.parametrize(("known", "bound"), [(exponential.SINGLE, -28.0), (exponential.DOUBLE, -63.5)])
def test_exp(known: exponential.Parameters, bound: float) -> None:
    def error(r: Real) -> Real:
        return (1 + r + r * r * polynomial(known.q, r)) / mpmath.exp(r) - 1

    assert largest(error, -0.3466, 0.3466) < bound


@pytest.mark.parametrize(("known", "bound"), [(exponential.SINGLE, -26.0), (exponential.DOUBLE, -54.5)])
def test_exp2(known: exponential.Parameters, bound: float) -> None:
    """The bound is that of ln 2 as it is rounded."""

    def error(r: Real) -> Real:
        return (1 + r * polynomial(known.p, r)) / mpmath.power(2, r) - 1

    assert largest(error, -0.5, 0.5) < bound


@pytest.mark.parametrize(("known", "bits", "kept"), [(exponential.SINGLE, 16, -44), (exponential.DOUBLE, 40, -93)])
def test_ln2(known: exponential.Parameters, bits: int, kept: int) -> None:
    """The first part has few bits, and both together are ln 2."""
    first, second = known.ln2
    assert (first * 2.0**bits).is_integer()
    with mpmath.workprec(200):
        assert abs(mpmath.mpf(first) + second - mpmath.log(2)) < mpmath.mpf(2) ** kept
