"""Functions of one tensor: precision by mpmath, and results for zeros, infinities and NaNs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, cast

import ml_dtypes
import mpmath
import numpy as np
import pytest

from tests.unit.intrinsics.test_meanings import compute, filled, number, random_array
from tlx.intrinsics.numpy_types import Array, dtype_of
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, Type

MP: Final = cast("Any", mpmath)  # has no types
FINFO: Final = cast("Any", ml_dtypes.finfo)


def mp_sigmoid(x: Any) -> Any:
    return 1 / (1 + MP.exp(-x))


PRECISE: Final[dict[str, Callable[[Any], Any]]] = {
    "tanh": MP.tanh,
    "sigmoid": mp_sigmoid,
    "erfc": MP.erfc,
    "sin": MP.sin,
    "cos": MP.cos,
    "exp": MP.exp,
    "exp2": lambda x: MP.power(2, x),
    "log": MP.log,
    "log2": lambda x: MP.log(x, 2),
    "log10": MP.log10,
    "sqrt": MP.sqrt,
    "floor": MP.floor,
    "ceil": MP.ceil,
}
ARGUMENTS: Final = {"log": (-300, 300), "log2": (-300, 300), "log10": (-300, 300), "sqrt": (-300, 300)}
DIGITS: Final[dict[Type, int]] = {HALF: 11, BFLOAT: 8, FLOAT: 24, DOUBLE: 53}


def arguments(rng: np.random.Generator, name: str, element: Type) -> Array:
    """Numbers of every size that the type and the function take."""
    sizes = rng.uniform(*ARGUMENTS.get(name, (-40, 9)), 200)
    limit = 14.0 if element == HALF else 300.0 if element == DOUBLE else 120.0
    x = np.exp2(np.clip(sizes, -limit, limit))
    signs = np.ones(200) if name in ARGUMENTS else rng.choice([-1, 1], 200)
    return (signs * x).astype(dtype_of(element))


@pytest.mark.parametrize("element", DIGITS)
@pytest.mark.parametrize("name", PRECISE)
def test_functions_are_precise(name: str, element: Type) -> None:
    """Half a unit in the last place, and what rounding twice may add."""
    x = arguments(np.random.default_rng(5), name, element)
    got = compute(name, [x], [], element)
    limits = FINFO(dtype_of(element))
    smallest, largest = float(limits.smallest_normal), float(limits.max)
    checked = 0
    with MP.workprec(2000):
        for argument, result in zip(x.astype(np.float64), got.astype(np.float64), strict=True):
            exact = PRECISE[name](MP.mpf(float(argument)))
            if not smallest <= abs(exact) < largest:
                assert abs(result) <= 2 * smallest or abs(result) >= largest
                continue
            unit = MP.ldexp(1, MP.frexp(exact)[1] - DIGITS[element])
            assert abs(MP.mpf(float(result)) - exact) <= 0.51 * unit, (argument, result)
            checked += 1
    assert checked > 50


INF, NAN = math.inf, math.nan
SPECIAL: Final[dict[str, list[tuple[float, float]]]] = {
    "relu": [(-0.0, 0.0), (0.0, 0.0), (-INF, 0.0), (INF, INF), (NAN, NAN), (-2.0, 0.0), (2.0, 2.0)],
    "tanh": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (NAN, NAN), (-1e3, 2.0), (1e3, 0.0)],
    "sin": [(-0.0, -0.0), (INF, NAN), (NAN, NAN)],
    "cos": [(-0.0, 1.0), (-INF, NAN), (NAN, NAN)],
    "exp": [(-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e9, INF), (-1e9, 0.0)],
    "exp2": [(-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (7.0, 128.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF), (-1.0, NAN), (NAN, NAN)],
    "log2": [(-0.0, -INF), (8.0, 3.0), (0.125, -3.0), (INF, INF), (-1.0, NAN)],
    "log10": [(-0.0, -INF), (1000.0, 3.0), (INF, INF), (-1.0, NAN)],
    "sqrt": [(-0.0, -0.0), (INF, INF), (-1.0, NAN), (-INF, NAN), (NAN, NAN)],
    "fabs": [(-0.0, 0.0), (-INF, INF), (-1.5, 1.5), (NAN, NAN)],
    "floor": [(-0.0, -0.0), (0.5, 0.0), (-0.5, -1.0), (-INF, -INF), (NAN, NAN)],
    "ceil": [(-0.0, -0.0), (-0.5, -0.0), (0.5, 1.0), (INF, INF), (NAN, NAN)],
}


@pytest.mark.parametrize("element", DIGITS)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, element: Type) -> None:
    dtype = dtype_of(element)
    with np.errstate(over="ignore"):
        x = np.array([x for x, _ in SPECIAL[name]]).astype(dtype)
    got = compute(name, [x], [], element).astype(np.float64)
    for result, (argument, expected) in zip(got, SPECIAL[name], strict=True):
        same = math.isnan(result) if math.isnan(expected) else result == expected
        assert same, argument
        assert math.isnan(expected) or math.copysign(1, result) == math.copysign(1, expected), argument


def test_fabs_clears_the_sign_of_nan() -> None:
    for element in DIGITS:
        minus = np.full(3, -np.nan).astype(dtype_of(element))
        assert not np.signbit(compute("fabs", [minus], [], element)).any()


@pytest.mark.parametrize("element", [I1, I8, I16, I32, I64])
def test_relu_of_integers(element: Type) -> None:
    x = random_array(np.random.default_rng(3), element, (40,))
    np.testing.assert_array_equal(
        compute("relu", [x], [], element), filled((40,), element, lambda p: max(0, number(x[p])))
    )
