"""Integer intrinsics, element by element.

They are written for Python integers, so that every width works; the common ones have a numpy form for vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tlx.evaluate.context import (
    CallSite,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    first_argument,
    type_independent,
    typed,
)
from tlx.evaluate.values import Array, RuntimeValue, element_dtype, is_native, signed, signed_array, width_of
from tlx.ir.types import IntType, StructType, VectorType, scalar_of

IntegerFunction = Callable[[int, int], int] | Callable[[int, int, int], int] | Callable[[int, int, int, int], int]
VectorFunction = Callable[..., Array]


def lanewise(function: IntegerFunction, fast: VectorFunction | None = None) -> ImplementationFactory:
    """An entry from a function (bits, *numbers) -> number; `fast` does the same on arrays of native width."""

    def make(site: CallSite) -> Implementation:
        bits = width_of(site.arguments[0])
        mask = (1 << bits) - 1
        number: Callable[..., int] = function
        if not isinstance(site.result, VectorType):
            return lambda *args: number(bits, *args) & mask
        element = scalar_of(site.result)
        if fast is not None and is_native(element):
            return fast
        dtype = element_dtype(element)
        return lambda *args: np.array([number(bits, *e) & mask for e in _lanes(args)], dtype)

    return make


def _lanes(args: tuple[RuntimeValue, ...]) -> list[tuple[int, ...]]:
    """The arguments of each lane; a scalar argument (an immediate) is the same for all."""
    count = len(args[0])
    columns = [[int(n) for n in a] if isinstance(a, np.ndarray) else [int(a)] * count for a in args]
    return list(zip(*columns, strict=True))


def _clamp_signed(bits: int, number: int) -> int:
    return min(max(number, -1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _clamp_unsigned(bits: int, number: int) -> int:
    return min(max(number, 0), (1 << bits) - 1)


def _leading_zeros(bits: int, number: int, _poison: int) -> int:
    return bits - number.bit_length()


def _trailing_zeros(bits: int, number: int, _poison: int) -> int:
    return (number & -number).bit_length() - 1 if number else bits


def _swapped(bits: int, number: int) -> int:
    return int.from_bytes(number.to_bytes(bits // 8, "little"), "big")


def _reversed_bits(bits: int, number: int) -> int:
    return int(f"{number:0{bits}b}"[::-1], 2)


def _funnel_left(bits: int, high: int, low: int, amount: int) -> int:
    return ((high << bits | low) << amount % bits) >> bits


def _funnel_right(bits: int, high: int, low: int, amount: int) -> int:
    return (high << bits | low) >> amount % bits


def _shift_left_signed(bits: int, number: int, amount: int) -> int:
    return _clamp_signed(bits, signed(number, bits) << amount)


def _scalar_choice(function: Callable[[Array, Array], Array], *, is_signed: bool) -> VectorFunction:
    if not is_signed:
        return function

    def run(a: Array, b: Array) -> Array:
        bits = 8 * a.dtype.itemsize
        return function(signed_array(a, bits), signed_array(b, bits)).view(a.dtype)

    return run


def with_overflow(exact: Callable[[int, int], int], *, is_signed: bool) -> ImplementationFactory:
    """`llvm.sadd.with.overflow` and its kin: {wrapped result, whether it was wrapped}."""

    def make(site: CallSite) -> Implementation:
        bits = width_of(site.arguments[0])
        mask = (1 << bits) - 1
        clamp = _clamp_signed if is_signed else _clamp_unsigned

        def one(a: int, b: int) -> tuple[int, int]:
            number = exact(signed(a, bits), signed(b, bits)) if is_signed else exact(a, b)
            return number & mask, int(clamp(bits, number) != number)

        assert isinstance(site.result, StructType)
        first = site.result.elements[0]
        if not isinstance(first, VectorType):
            return one

        def lanes(a: Array, b: Array) -> tuple[Array, Array]:
            pairs = [one(int(x), int(y)) for x, y in zip(a, b, strict=True)]
            return np.array([p[0] for p in pairs], a.dtype), np.array([p[1] for p in pairs], np.bool_)

        return lanes

    return make


def _three_way(site: CallSite, *, is_signed: bool) -> Implementation:
    """`llvm.scmp`, `llvm.ucmp`: -1, 0 or 1."""
    bits = width_of(site.arguments[0])
    element = scalar_of(site.result)
    assert isinstance(element, IntType)
    mask = (1 << element.bits) - 1

    def one(a: int, b: int) -> int:
        a, b = (signed(a, bits), signed(b, bits)) if is_signed else (a, b)
        return ((a > b) - (a < b)) & mask

    if not isinstance(site.result, VectorType):
        return one
    return typed(lambda a, b: np.array([one(*e) for e in _lanes((a, b))], element_dtype(element)))


_MULTIPLY: Final = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__}

INTEGER_INTRINSICS: Final[FunctionTable] = {
    "smax": lanewise(lambda n, a, b: max(a, b, key=lambda v: signed(v, n)), _scalar_choice(np.maximum, is_signed=True)),
    "smin": lanewise(lambda n, a, b: min(a, b, key=lambda v: signed(v, n)), _scalar_choice(np.minimum, is_signed=True)),
    "umax": lanewise(lambda _n, a, b: max(a, b), _scalar_choice(np.maximum, is_signed=False)),
    "umin": lanewise(lambda _n, a, b: min(a, b), _scalar_choice(np.minimum, is_signed=False)),
    "abs": lanewise(lambda n, a, _poison: abs(signed(a, n))),
    "ctpop": lanewise(lambda _n, a: a.bit_count()),
    "ctlz": lanewise(_leading_zeros),
    "cttz": lanewise(_trailing_zeros),
    "bswap": lanewise(_swapped),
    "bitreverse": lanewise(_reversed_bits),
    "fshl": lanewise(_funnel_left),
    "fshr": lanewise(_funnel_right),
    "sadd.sat": lanewise(lambda n, a, b: _clamp_signed(n, signed(a, n) + signed(b, n))),
    "ssub.sat": lanewise(lambda n, a, b: _clamp_signed(n, signed(a, n) - signed(b, n))),
    "uadd.sat": lanewise(lambda n, a, b: _clamp_unsigned(n, a + b)),
    "usub.sat": lanewise(lambda n, a, b: _clamp_unsigned(n, a - b)),
    "sshl.sat": lanewise(_shift_left_signed),
    "ushl.sat": lanewise(lambda n, a, b: _clamp_unsigned(n, a << b)),
    "scmp": lambda site: _three_way(site, is_signed=True),
    "ucmp": lambda site: _three_way(site, is_signed=False),
    **{f"s{n}.with.overflow": with_overflow(f, is_signed=True) for n, f in _MULTIPLY.items()},
    **{f"u{n}.with.overflow": with_overflow(f, is_signed=False) for n, f in _MULTIPLY.items()},
    "expect": type_independent(first_argument),
    "ssa.copy": type_independent(first_argument),
    "is.constant": type_independent(lambda *_: 0),
}
