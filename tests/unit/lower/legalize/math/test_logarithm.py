"""log, log2 and log10 are close to the exact result, for every target and both formats."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from tests.unit.lower.legalize.math.functions import (
    DTYPES,
    ELEMENTS,
    RUNNABLE,
    TYPE_NAMES,
    computed,
    denormals,
    every_exponent,
    uniform,
    worst,
)
from tlx.ir.types import DOUBLE, FLOAT, FloatType

# Ulp that no argument exceeds, with fused and with separate multiply and add.
BOUNDS: Final = {
    FLOAT: {"log": 1.7, "log2": 2.2, "log10": 2.2},
    DOUBLE: {"log": 1.0, "log2": 1.5, "log10": 1.5},
}
INF: Final = float("inf")
NAN: Final = float("nan")

pytestmark = [
    pytest.mark.parametrize("target", RUNNABLE),
    pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES),
]
each = pytest.mark.parametrize("name", BOUNDS[FLOAT])


@each
def test_every_exponent(name: str, element: FloatType, target: str) -> None:
    x = np.abs(every_exponent(element, 1 << (13 if element == FLOAT else 21)))
    assert worst(name, x[x > 0], target) < BOUNDS[element][name]


@each
def test_near_one(name: str, element: FloatType, target: str) -> None:
    """Where the result is small, and where the exponent goes over to the next, at the square root of 2."""
    count = 200_000 if element == FLOAT else 1500
    assert worst(name, uniform(element, 0.3, 3.0, count), target) < BOUNDS[element][name]
    assert worst(name, 1 + uniform(element, -1e-4, 1e-4, 1000), target) < BOUNDS[element][name]
    assert worst(name, uniform(element, 0.7071, 0.70711, 500), target) < BOUNDS[element][name]


@each
def test_neighbours_of_one(name: str, element: FloatType, target: str) -> None:
    one = np.ones(3, DTYPES[element])
    x = np.nextafter(one, np.array([0, 1, 2], one.dtype))
    assert computed(name, x, target)[1] == 0
    assert not np.signbit(computed(name, x, target)[1])
    assert worst(name, x, target) < BOUNDS[element][name]


@each
def test_denormal_arguments(name: str, element: FloatType, target: str) -> None:
    assert worst(name, np.abs(denormals(element, 300)), target) < BOUNDS[element][name]


@each
def test_special_values(name: str, element: FloatType, target: str) -> None:
    smallest = float(np.finfo(DTYPES[element]).smallest_subnormal)
    x = np.array([0.0, -0.0, INF, -INF, NAN, -1.0, -smallest, -1e30, 1.0], DTYPES[element])
    expected = np.array([-INF, -INF, INF, NAN, NAN, NAN, NAN, NAN, 0.0], DTYPES[element])
    np.testing.assert_array_equal(computed(name, x, target), expected)


def test_powers_of_two_are_exact(element: FloatType, target: str) -> None:
    low, high = (-149, 128) if element == FLOAT else (-1074, 1024)
    exponents = np.arange(low, high)
    x = np.ldexp(np.ones(exponents.size, DTYPES[element]), exponents)
    np.testing.assert_array_equal(computed("log2", x, target), exponents.astype(x.dtype))
