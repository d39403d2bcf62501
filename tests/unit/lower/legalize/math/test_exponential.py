"""exp, exp2, sigmoid and tanh are close to the exact result, for every target and both formats."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from tests.unit.lower.legalize.math.functions import (
    DTYPES,
    ELEMENTS,
    RANGES,
    RUNNABLE,
    TYPE_NAMES,
    computed,
    denormals,
    errors,
    every_exponent,
    lanes_of,
    program,
    uniform,
    worst,
)
from tlx.ir.types import DOUBLE, FLOAT, FloatType
from tlx.lower.operations import FULL_ACCURACY, Accuracy
from tlx.target.lookup import find_target

# Ulp that no argument exceeds, with fused and with separate multiply and add.
BOUNDS: Final = {
    FLOAT: {"exp": 1.8, "exp2": 1.5, "sigmoid": 2.1, "tanh": 2.6},
    DOUBLE: {"exp": 1.1, "exp2": 1.5, "sigmoid": 1.6, "tanh": 1.8},
}
# Subnormal results are rounded again; their last place is two of a float's or more: 1.8 / 2 + 1 / 2.
SUBNORMAL_BOUNDS: Final = {("exp", FLOAT): 1.4}
INF: Final = float("inf")
NAN: Final = float("nan")

pytestmark = [
    pytest.mark.parametrize("target", RUNNABLE),
    pytest.mark.parametrize("element", ELEMENTS, ids=TYPE_NAMES),
]
each = pytest.mark.parametrize("name", BOUNDS[FLOAT])


@each
def test_where_results_change(name: str, element: FloatType, target: str) -> None:
    x = uniform(element, *RANGES[element, name], 200_000 if element == FLOAT else 1500)
    assert worst(name, x, target) < BOUNDS[element][name]


@each
def test_near_zero(name: str, element: FloatType, target: str) -> None:
    x = uniform(element, -1.5, 1.5, 200_000 if element == FLOAT else 1500)
    assert worst(name, x, target) < BOUNDS[element][name]


@each
def test_every_exponent(name: str, element: FloatType, target: str) -> None:
    x = every_exponent(element, 1 << (13 if element == FLOAT else 22))
    low, high = RANGES[element, name]
    x = x[(x > low) & (x < high)]
    assert x.size > 300
    assert worst(name, x, target) < BOUNDS[element][name]


@each
def test_denormal_arguments(name: str, element: FloatType, target: str) -> None:
    assert worst(name, denormals(element, 200), target) < BOUNDS[element][name]


@pytest.mark.parametrize(
    ("name", "floats", "doubles"),
    [
        ("exp", (-103.97, -87.34), (-745.1, -708.4)),
        ("exp2", (-149.9, -126.0), (-1074.9, -1022.0)),
        ("sigmoid", (-103.97, -87.34), (-745.1, -708.4)),
    ],
)
def test_denormal_results(
    name: str, floats: tuple[float, float], doubles: tuple[float, float], element: FloatType, target: str
) -> None:
    x = uniform(element, *(floats if element == FLOAT else doubles), 20_000 if element == FLOAT else 500)
    y = computed(name, x, target)
    assert np.all((y > 0) & (y < np.finfo(y.dtype).smallest_normal * 1.01))
    assert worst(name, x, target) < SUBNORMAL_BOUNDS.get((name, element), 1.0)


SPECIAL: Final[dict[str, list[tuple[float, float]]]] = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (1e30, INF), (-1e30, 0.0), (NAN, NAN)],
    "exp2": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (-0.0, 1.0), (1e30, INF), (-1e30, 0.0), (NAN, NAN)],
    "sigmoid": [(-INF, 0.0), (INF, 1.0), (0.0, 0.5), (-0.0, 0.5), (1e30, 1.0), (-1e30, 0.0), (NAN, NAN)],
    "tanh": [(-INF, -1.0), (INF, 1.0), (0.0, 0.0), (-0.0, -0.0), (1e30, 1.0), (-1e30, -1.0), (NAN, NAN)],
}


@each
def test_special_values(name: str, element: FloatType, target: str) -> None:
    x, expected = (np.array(column, DTYPES[element]) for column in zip(*SPECIAL[name], strict=True))
    y = computed(name, x, target)
    np.testing.assert_array_equal(y, expected)
    assert np.array_equal(np.signbit(y), np.signbit(expected)) or name != "tanh"


@pytest.mark.parametrize(
    ("name", "of_format"),
    [
        (
            "exp",
            {FLOAT: (88.72283, 88.72284, -103.97207, -103.97209), DOUBLE: (709.78271, 709.78272, -745.133, -745.134)},
        ),
        ("exp2", {FLOAT: (127.99999, 128.0, -149.99998, -150.0), DOUBLE: (1023.99999, 1024.0, -1074.9999, -1075.0)}),
    ],
)
def test_ends_of_the_range(
    name: str, of_format: dict[FloatType, tuple[float, float, float, float]], element: FloatType, target: str
) -> None:
    """The last finite result, the first infinite one, the last that is not zero and the first that is."""
    x = np.array(of_format[element], DTYPES[element])
    y: Any = computed(name, x, target)
    assert np.isfinite(y[0])
    assert y[1] == INF
    assert y[2] == np.finfo(x.dtype).smallest_subnormal
    assert y[3] == 0


def test_results_known_to_be_normal(element: FloatType, target: str) -> None:
    """Without clamps, and without code for subnormal results, e^x has the same error in a part of the instructions."""
    accuracy = Accuracy(normal=True)
    least, largest = (-87.33, 88.72) if element == FLOAT else (-708.39, 709.78)
    x = np.concatenate([uniform(element, least, largest, 100_000 if element == FLOAT else 1000), [0.0, -0.0, 1e-30]])
    x = x.astype(DTYPES[element])
    assert np.max(errors("exp", x, computed("exp", x, target, accuracy))) < BOUNDS[element]["exp"]
    machine = find_target(target)
    texts = (program("exp", element, machine, lanes_of(machine, element), a) for a in (accuracy, FULL_ACCURACY))
    short, long = (text.count(" = ") for text in texts)
    assert short <= 0.8 * long


def test_powers_of_two_are_exact(element: FloatType, target: str) -> None:
    low, high = (-149, 128) if element == FLOAT else (-1074, 1024)
    exponents = np.arange(low, high)
    expected = np.ldexp(np.ones(exponents.size, DTYPES[element]), exponents)
    np.testing.assert_array_equal(computed("exp2", exponents.astype(DTYPES[element]), target), expected)
