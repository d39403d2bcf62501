"""Conversions that round once.

numpy rounds wide numbers to half or bfloat in two steps in places. Here a number is first rounded *to odd* (if it is
not exact, to the neighbour whose last bit is one) in a format at least two bits wider; rounding that to the target is
then the same as rounding once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
"""

from __future__ import annotations

import numpy as np

from tlx.evaluate.values import BFLOAT16, Array, DType


def to_odd(rounded: Array, error: Array) -> Array:
    """Turn numbers rounded to nearest into numbers rounded to odd.

    Args:
        rounded: The numbers, float32 or float64.
        error: What they lack, exact number minus rounded: only its sign matters.
    """
    bits = rounded.view(f"u{rounded.dtype.itemsize}")
    move = np.isfinite(error) & (error != 0) & ((bits & 1) == 0)
    move |= np.isinf(rounded) & np.isinf(error) & (np.sign(error) != np.sign(rounded))
    towards = np.copysign(np.asarray(np.inf, rounded.dtype), error).astype(rounded.dtype)
    return np.where(move, np.nextafter(rounded, towards), rounded)


def to_float(numbers: Array, dtype: DType) -> Array:
    """Floating-point numbers in another floating-point type, rounded to nearest even once."""
    if dtype == BFLOAT16 and numbers.dtype == np.float64:
        single = numbers.astype(np.float32)
        return to_odd(single, numbers - single.astype(np.float64)).astype(BFLOAT16)
    return numbers.astype(dtype)


def from_integers(numbers: Array, dtype: DType) -> Array:
    """Integers of any width (objects: Python ints) as floating-point numbers, rounded once."""
    if numbers.dtype.kind == "O":
        return (
            to_float(np.array([_odd_double(int(n)) for n in numbers], np.float64), dtype)
            if (dtype != np.float64)
            else np.array([float(int(n)) for n in numbers], np.float64)
        )
    if numbers.dtype.itemsize <= 4:
        return to_float(numbers.astype(np.float64), dtype)
    if dtype.itemsize >= 4:
        return numbers.astype(dtype)
    return to_float(np.array([_odd_double(int(n)) for n in numbers], np.float64), dtype)


def _odd_double(number: int) -> float:
    """An integer rounded to odd: its last bits are gathered into one."""
    drop = max(abs(number).bit_length() - 53, 0)
    if drop == 0:
        return float(number)
    kept = abs(number) >> drop
    kept |= (abs(number) & ((1 << drop) - 1)) != 0
    try:
        return float((kept << drop) * (1 if number > 0 else -1))
    except OverflowError:
        return np.inf if number > 0 else -np.inf
