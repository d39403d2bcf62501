"""Taking floating-point numbers apart and putting them together, without instructions that only some machines have."""

from __future__ import annotations

from dataclasses import dataclass

from tlx.ir.values import Value
from tlx.lower.legalize.math.lanes import Lanes, Operand


@dataclass(frozen=True, slots=True)
class Rounded:
    """An integer for each lane of a register.

    Attributes:
        number: The integers as floats.
        word: The same integers as integers.
        ending: Words whose last bits are those of the integers.
    """

    number: Value
    word: Value
    ending: Value


def nearest(lanes: Lanes, x: Value, scale: float = 1.0, steps: int = 1) -> Rounded:
    """A multiple of 1 / steps near x * scale, which is below 2^21 (float) or 2^50 (double) such; of two, either.

    x + 3/2 2^p / steps, p the bits of the fraction, is a number whose last place is one step: how many they are stands
    in its last bits, in two's complement.
    """
    magic = 1.5 * 2.0**lanes.fraction / steps
    shifted = lanes.add(x, magic) if scale == 1.0 else lanes.multiply_add(x, scale, magic)
    field = lanes.bias + lanes.fraction - (steps.bit_length() - 1)
    magic_bits = field << lanes.fraction | 1 << (lanes.fraction - 1)
    ending = lanes.bits(shifted)
    return Rounded(lanes.sub(shifted, magic), lanes.integer_op("sub", ending, magic_bits), ending)


def power_of_two(lanes: Lanes, exponent: Value) -> Value:
    """2^exponent, within the normal numbers."""
    return _with_field(lanes, lanes.integer_op("add", exponent, lanes.bias))


def scaled(lanes: Lanes, x: Value, exponent: Rounded) -> Value:
    """Multiply x, near one, by 2^exponent: through overflow to infinity and gradual underflow to zero.

    Where that is no instruction: 2^exponent itself may be no number, so it is two factors of about its square root. For
    x near one the first product is exact, so that the result is rounded once.
    """
    if lanes.helpers is not None:
        return lanes.helpers.scale(lanes.b, x, exponent.number)
    both = lanes.integer_op("add", exponent.word, 2 * lanes.bias)
    first = lanes.integer_op("lshr", both, 1)
    second = lanes.integer_op("sub", both, first)
    return lanes.mul(lanes.mul(x, _with_field(lanes, first)), _with_field(lanes, second))


def _with_field(lanes: Lanes, field: Value) -> Value:
    """The power of two with that exponent field."""
    return lanes.from_bits(lanes.integer_op("shl", field, lanes.fraction))


def fast_sum(lanes: Lanes, large: Operand, small: Value) -> tuple[Value, Value]:
    """A sum and its rounding error, where the first operand is zero or no smaller than the second (Dekker)."""
    total = lanes.add(large, small)
    return total, lanes.add(lanes.sub(large, total), small)


def exact_sum(lanes: Lanes, first: Value, second: Operand) -> tuple[Value, Value]:
    """A sum and its rounding error, whichever operand is larger (Knuth)."""
    total = lanes.add(first, second)
    part = lanes.sub(total, first)
    return total, lanes.add(lanes.sub(first, lanes.sub(total, part)), lanes.sub(second, part))
