"""The polynomials approximate their functions as precisely as the docstrings say, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import mpmath as _mpmath
import pytest

from tlx.lower.legalize.math import exponential, logarithm, trigonometric

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


@pytest.mark.parametrize(("known", "bound"), [(exponential.SINGLE, -27.8), (exponential.DOUBLE, -60.0)])
def test_exp(known: exponential.ExponentialParameters, bound: float) -> None:
    def error(r: Real) -> Real:
        return (1 + r + r * r * polynomial(known.q, r)) / mpmath.exp(r) - 1

    assert largest(error, -0.3466, 0.3466) < bound


@pytest.mark.parametrize(("known", "bound"), [(exponential.SINGLE, -27.9), (exponential.DOUBLE, -54.5)])
def test_exp2(known: exponential.ExponentialParameters, bound: float) -> None:
    """The bound is that of ln 2 as it is rounded."""

    def error(r: Real) -> Real:
        return (1 + r * polynomial(known.p, r)) / mpmath.power(2, r) - 1

    assert largest(error, -0.5, 0.5) < bound


@pytest.mark.parametrize(("known", "bits", "exponent"), [(exponential.SINGLE, 16, -44), (exponential.DOUBLE, 40, -93)])
def test_ln2(known: exponential.ExponentialParameters, bits: int, exponent: int) -> None:
    """The first part has few bits, and both together are ln 2."""
    first, second = known.ln2
    assert (first * 2.0**bits).is_integer()
    with mpmath.workprec(200):
        assert abs(mpmath.mpf(first) + second - mpmath.log(2)) < mpmath.mpf(2) ** exponent


@pytest.mark.parametrize(("coefficients", "bound"), [(logarithm.SINGLE, -29.5), (logarithm.DOUBLE, -58.5)])
def test_log(coefficients: Sequence[float], bound: float) -> None:
    def error(f: Real) -> Real:
        if abs(f) < 1e-20:
            return mpmath.mpf(0)
        s = f / (2 + f)
        return (2 * s + s**3 * polynomial(coefficients, s * s)) / mpmath.log(1 + f) - 1

    assert largest(error, -0.2929, 0.4143) < bound


@pytest.mark.parametrize(("base", "number"), [(logarithm.E, None), (logarithm.TWO, 2), (logarithm.TEN, 10)])
def test_bases(base: logarithm.LogarithmBase, number: int | None) -> None:
    with mpmath.workprec(200):
        c = 1 / mpmath.log(number) if number else mpmath.mpf(1)
        assert abs(base.factor - c) < mpmath.mpf(2) ** -53
        assert abs(base.exact + mpmath.mpf(base.rest) - c) < mpmath.mpf(2) ** -53
        for parts, bits, exponent in ((base.single, 16, -40), (base.double, 42, -94)):
            assert (parts[0] * 2.0**bits).is_integer()
            assert abs(mpmath.mpf(parts[0]) + parts[1] - c * mpmath.log(2)) < mpmath.mpf(2) ** exponent


@pytest.mark.parametrize(
    ("sine", "cosine", "bounds"),
    [
        (trigonometric.SINE_SINGLE, trigonometric.COSINE_SINGLE, (-27.8, -30.5)),
        (trigonometric.SINE_DOUBLE, trigonometric.COSINE_DOUBLE, (-57.8, -59.0)),
    ],
)
def test_sine_and_cosine(sine: Sequence[float], cosine: Sequence[float], bounds: tuple[float, float]) -> None:
    def error_of_sine(r: Real) -> Real:
        return (r + r**3 * polynomial(sine, r * r)) / mpmath.sin(r) - 1

    def error_of_cosine(r: Real) -> Real:
        return (1 - r * r / 2 + r**4 * polynomial(cosine, r * r)) / mpmath.cos(r) - 1

    assert largest(error_of_sine, 1e-3, 0.7854) < bounds[0]
    assert largest(error_of_cosine, 0, 0.7854) < bounds[1]


@pytest.mark.parametrize(
    ("parts", "bits", "exponent"),
    [
        (trigonometric.PARTS, (32, 65, 98), 156),
        (trigonometric.TWO_PARTS, (32,), 86),
        (trigonometric.HALF_PI[:2], (25,), 78),
    ],
)
def test_half_pi(parts: Sequence[float], bits: Sequence[int], exponent: int) -> None:
    """Each part but the last ends at a bit, and together they are pi/2."""
    assert all((part * 2.0**bit).is_integer() for part, bit in zip(parts, bits, strict=False))
    with mpmath.workprec(300):
        assert abs(mpmath.fsum(map(mpmath.mpf, parts)) - mpmath.pi / 2) < mpmath.mpf(2) ** -exponent


def test_words_of_two_over_pi() -> None:
    with mpmath.workprec(1600):
        bits = int(mpmath.floor(mpmath.ldexp(2 / mpmath.pi, trigonometric.BITS * (len(trigonometric.WORDS) - 2))))
    number = 0
    for word in trigonometric.WORDS:
        assert 0 <= word < 1 << trigonometric.BITS
        number = number << trigonometric.BITS | word
    assert number == bits
