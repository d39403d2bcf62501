"""Polynomials with constant coefficients, lowest power first."""

from __future__ import annotations

from collections.abc import Sequence

from tlx.ir.values import Value
from tlx.lower.legalize.math.lanes import Lanes


def numbers(text: str) -> tuple[float, ...]:
    """Numbers in C's hexadecimal spelling, which is exact."""
    return tuple(map(float.fromhex, text.split()))


def horner(lanes: Lanes, x: Value, coefficients: Sequence[float]) -> Value:
    """c0 + x (c1 + x (c2 + ...)): one multiply-add a coefficient, each waiting for the last."""
    result: Value = lanes.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = lanes.multiply_add(result, x, coefficient)
    return result


def even_odd(lanes: Lanes, x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """(c0 + c2 x² + ...) + x (c1 + c3 x² + ...): two chains of half the length, for long polynomials."""
    even = horner(lanes, square, coefficients[::2])
    odd = horner(lanes, square, coefficients[1::2])
    return lanes.multiply_add(odd, x, even)
