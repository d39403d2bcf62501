"""sin and cos are close to the exact result, for every target, both formats and arguments of any size."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import mpmath as _mpmath
import numpy as np
import pytest

from tests.unit.lower.legalize.math.functions import (
    DTYPES,
    ELEMENTS,
    RUNNABLE,
    TYPE_NAMES,
    Array,
    computed,
    denormals,
    error_of_double,
    every_exponent,
    uniform,
    worst,
)
from tlx.ir.types import FLOAT, FloatType
from tlx.lower.legalize.math.trigonometric import HUGE

mpmath: Any = _mpmath  # has no types
BOUND: Final = {"float": 1.7, "double": 1.0}
INF: Final = float("inf")
NAN: Final = float("nan")
_BITS: Final = 1400

pytestmark = [
    pytest.mark.parametrize("target", RUNNABLE),
    pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES),
]
each = pytest.mark.parametrize("name", ["sin", "cos"])


def denominators(numerator: int, below: int) -> Iterator[int]:
    """Denominators of the continued fraction of numerator / 2^_BITS: no smaller ones come as near to a whole number."""
    a, b = numerator % (1 << _BITS), 1 << _BITS
    older, old = 0, 1
    while a:
        quotient, rest = divmod(b, a)
        older, old = old, quotient * old + older
        if old >= below:
            return
        yield old
        a, b = rest, a


@cache
def near_multiples(element: FloatType) -> Array:
    """Of every exponent above that of pi, the numbers m 2^e nearest to a multiple of pi/2."""
    digits, top = (24, 104) if element == FLOAT else (53, 971)
    with mpmath.workprec(_BITS + 1100):
        two_over_pi = 2 / mpmath.pi
        result = [
            np.ldexp(float(q * k), e)
            for e in range(2 - digits, top + 1)
            for q in denominators(int(mpmath.floor(mpmath.ldexp(two_over_pi, _BITS + e))), 1 << digits)
            for k in {((1 << digits) - 1) // q}
            if q > 1 << (digits // 2)
        ]
    return np.array(result, DTYPES[element])


def bound(element: FloatType) -> float:
    return BOUND[str(element)]


@each
def test_moderate_arguments(name: str, element: FloatType, target: str) -> None:
    x = uniform(element, -30, 30, 200_000 if element == FLOAT else 2000)
    assert worst(name, x, target) < bound(element)


@each
def test_large_arguments(name: str, element: FloatType, target: str) -> None:
    """Up to where the reduction changes, and past it."""
    x = uniform(element, -2 * HUGE, 2 * HUGE, 200_000 if element == FLOAT else 2000)
    assert worst(name, x, target) < bound(element)
    edge = np.array([np.nextafter(HUGE, 0), HUGE, np.nextafter(HUGE, INF)]).astype(DTYPES[element])
    assert worst(name, edge, target) < bound(element)


@each
def test_every_exponent(name: str, element: FloatType, target: str) -> None:
    x = every_exponent(element, 1 << (13 if element == FLOAT else 21))
    assert worst(name, x, target) < bound(element)


@each
def test_near_multiples_of_half_pi(name: str, element: FloatType, target: str) -> None:
    """Where all but the last bits cancel."""
    x = near_multiples(element)
    assert x.size > 100
    assert np.max(x) > np.finfo(x.dtype).max / 4
    y = computed(name, x, target)
    hardest = 1e-7 if element == FLOAT else 1e-17
    assert np.min(np.abs(y)) < hardest
    chosen = range(0, x.size, 1 if element == FLOAT else 4)
    assert worst(name, x[chosen], target) < bound(element)


@each
def test_hardest_double(name: str, element: FloatType, target: str) -> None:
    """Of all doubles this is nearest to a multiple of pi/2, by 2^-61; as a float, it is as any other."""
    hardest = np.ldexp(6381956970095103.0, 797) if element != FLOAT else np.ldexp(16367173.0, 72)
    x = np.array([hardest, -hardest], DTYPES[element])
    assert worst(name, x, target) < bound(element)
    if element != FLOAT and name == "cos":
        assert abs(computed(name, x, target)[0]) < 5e-19


@each
def test_largest_finite(name: str, element: FloatType, target: str) -> None:
    x = np.array([np.finfo(DTYPES[element]).max, -np.finfo(DTYPES[element]).max], DTYPES[element])
    y = computed(name, x, target)
    assert y[0] == (y[1] if name == "cos" else -y[1])
    if element == FLOAT:
        with mpmath.workprec(400):
            exact = float(getattr(mpmath, name)(mpmath.mpf(float(x[0]))))
        assert abs(float(y[0]) - exact) < 1.7 * 2.0**-24
    else:
        assert error_of_double(name, float(x[0]), float(y[0])) < bound(element)


@each
def test_one_huge_lane(name: str, element: FloatType, target: str) -> None:
    """A huge number beside others changes nothing for these."""
    x: Array = np.linspace(-9, 9, 64).astype(DTYPES[element])
    mixed = x.copy()
    mixed[5::9] = 1e30
    same = mixed == x
    np.testing.assert_array_equal(computed(name, mixed, target)[same], computed(name, x, target)[same])
    assert worst(name, mixed, target) < bound(element)


def test_small_arguments(element: FloatType, target: str) -> None:
    """The sine of a tiny number is the number, its cosine is one."""
    x = denormals(element, 200)
    np.testing.assert_array_equal(computed("sin", x, target), x)
    np.testing.assert_array_equal(computed("cos", x, target), np.ones_like(x))


def test_special_values(element: FloatType, target: str) -> None:
    x = np.array([0.0, -0.0, INF, -INF, NAN], DTYPES[element])
    sine = computed("sin", x, target)
    np.testing.assert_array_equal(sine, np.array([0.0, -0.0, NAN, NAN, NAN], x.dtype))
    assert list(np.signbit(sine[:2])) == [False, True]
    np.testing.assert_array_equal(computed("cos", x, target), np.array([1.0, 1.0, NAN, NAN, NAN], x.dtype))
