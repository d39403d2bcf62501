"""What the tests of scalars share: numbers at the ends of their types, and how results are compared."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

import ml_dtypes
import numpy as np

from tests.semantics.frontends.tensor_language.matrix.cases import DTYPES
from tlx.intrinsics.numpy_types import Array

INTEGERS: Final = ("i8", "i16", "i32", "i64", "index")
FLOATS: Final = ("bf16", "f16", "f32", "f64")
PARTS: Final = {"c32": "f32", "c64": "f64"}


def numbers(type_: str) -> Array:
    """Numbers of a type: small ones, its ends, powers of two and numbers half-way between those of narrower types."""
    if type_ in PARTS:
        real = numbers(PARTS[type_])[::3]
        return paired(np.repeat(real, len(real)), np.tile(real, len(real)), type_)
    return _integers(type_) if type_ in INTEGERS else _floats(type_)


def limits(type_: str) -> Any:
    """Largest number, bits and so on of a type of real numbers."""
    information: Any = np.iinfo if type_ in INTEGERS else ml_dtypes.finfo
    return information(DTYPES[type_])


def paired(real: Array, imaginary: Array, type_: str) -> Array:
    """Complex numbers; `real + 1j * imaginary` would make NaN of infinities."""
    result: Any = np.zeros(np.shape(real), DTYPES[type_])
    result.real, result.imag = real, imaginary
    return result


def parts(numbers: Any) -> tuple[Array, Array]:
    """Real and imaginary parts."""
    return numbers.real, numbers.imag


def same(a: Array, b: Array) -> Array:
    """Which entries are the same numbers: zeros with their signs, any NaN the same as any other."""
    if a.dtype.kind == "c":
        return np.logical_and(*(same(*pair) for pair in zip(parts(a), parts(b), strict=True)))
    if a.dtype.kind == "i":
        return a == b
    wide, other = a.astype(np.float64), b.astype(np.float64)
    return ((wide == other) & (np.signbit(wide) == np.signbit(other))) | (np.isnan(wide) & np.isnan(other))


def nearest(number: Any, type_: str) -> float:
    """A Python number as a float type holds it: to nearest, ties to even, in exact arithmetic."""
    info = limits(type_)
    if float(number) == 0 or not np.isfinite(float(number)):
        return float(number)
    exact = abs(Fraction(int(number)) if np.asarray(number).dtype.kind == "i" else Fraction(float(number)))
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > exact
    unit = Fraction(2) ** (max(exponent, int(info.minexp)) - int(info.nmant))
    rounded = round(exact / unit) * unit
    result = float("inf") if rounded > Fraction(float(info.max)) else float(rounded)
    return -result if number < 0 else result


def _integers(type_: str) -> Array:
    info = limits(type_)
    result = [0, 1, -1, 2, 3, 7, -7, 100, -100, info.max, info.max - 1, info.min, info.min + 1]
    for digits in (8, 11, 24, 53):
        for exponent in range(digits + 1, info.bits - 1, 3):
            half_way = (1 << exponent) + (1 << (exponent - digits))
            odd = half_way + (1 << (exponent - digits + 1))
            result += [n for n in (half_way - 1, half_way, half_way + 1, odd, -half_way) if n < info.max]
    return np.array(result, DTYPES[type_])


def _floats(type_: str) -> Array:
    info = limits(type_)
    ends = [float(info.max), float(info.tiny), float(info.smallest_subnormal), np.inf]
    result = [0.0, 1.0, 1.5, 2.5, 1 / 3, 100.0, 127.5, 129.0, 2.0**-9, 2.0**31, 2.0**63, 65519.99, 65520.0, *ends]
    for digits in (8, 11, 24):
        for exponent in (-140, -25, -16, 0, 15):
            half_way = (1 + 2.0**-digits) * 2.0**exponent
            result += [half_way, half_way * (1 + 2.0**-40), half_way * (1 - 2.0**-40), half_way + 2.0 ** (exponent - 7)]
    with np.errstate(over="ignore"):
        return np.array([np.nan, *result, *(-n for n in result)]).astype(DTYPES[type_])
