"""Instructions that compute, or shorten, mathematical functions of floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlx.ir.builder import Builder
    from tlx.ir.values import Value


@dataclass(frozen=True, slots=True)
class FloatInstructions:
    """Instructions that shorten mathematical functions, on whole registers of float or double.

    Attributes:
        scale: (builder, x, n) -> x 2^floor(n), rounded once, also to infinity and to denormals.
        reciprocal: (builder, x) -> 1 / x to 2^-14 or better, for x far from the ends of the range.
        fraction: (builder, x) -> x less the integer next to it; 0 for infinity.
        exponent: (builder, x) -> floor(log2 |x|) as a number: of zero -infinity, of infinity infinity.
        mantissa: (builder, x) -> x / 2^n from 3/4 to 3/2; 1 of zero and infinity, NaN of negative numbers.
        significand: (builder, x) -> |x| / 2^n from 1 to 2; 1 of zero and infinity.
        look_up: (builder, table, n) -> for each lane, the entry at the index in the low bits of n of 16 or 32 floats.
        round_to_bits: (builder, x, lanes, y) -> in those lanes, the number whose bits are the integer nearest to x; y
            in the others.
        multiply_add_up: (builder, x, y, z) -> x y + z, rounded once, upward.
    """

    scale: Callable[[Builder, Value, Value], Value]
    reciprocal: Callable[[Builder, Value], Value]
    fraction: Callable[[Builder, Value], Value]
    exponent: Callable[[Builder, Value], Value]
    mantissa: Callable[[Builder, Value], Value]
    significand: Callable[[Builder, Value], Value]
    look_up: Callable[[Builder, Sequence[float], Value], Value]
    round_to_bits: Callable[[Builder, Value, Value, Value], Value]
    multiply_add_up: Callable[[Builder, Value, Value, Value], Value]


@dataclass(frozen=True, slots=True)
class FloatEstimates:
    """Instructions that estimate functions of floats, and one that clamps them to 0 to 1.

    They take registers of any number of floats.

    Attributes:
        power_of_two: (builder, x) -> 2^x with a relative error of 2^-22; zero below the normal numbers.
        reciprocal: (builder, x) -> 1 / x with a relative error of 2^-23, zero of infinity and of numbers near it.
        saturate: (builder, x) -> x, at least 0 and at most 1; 0 of NaN.
    """

    power_of_two: Callable[[Builder, Value], Value]
    reciprocal: Callable[[Builder, Value], Value]
    saturate: Callable[[Builder, Value], Value]
