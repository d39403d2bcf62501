"""LLVM's intrinsics on integers and floating-point numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np

from tlx.evaluate.arithmetic import saturated
from tlx.evaluate.context import (
    CallSite,
    FunctionTable,
    Implementation,
    ImplementationFactory,
    first_argument,
    type_independent,
    typed,
)
from tlx.evaluate.values import (
    BFLOAT16,
    RuntimeValue,
    element_dtype,
    is_native,
    scalar,
    signed,
    signed_array,
    smallest_normal,
    to_float,
    to_odd,
    vector,
    width_of,
)
from tlx.intrinsics.numpy_types import Array
from tlx.intrinsics.small_floats import format_named
from tlx.ir.types import IntType, StructType, VectorType, scalar_of

Elementwise = Callable[..., Array]


def elementwise(function: Elementwise) -> ImplementationFactory:
    """A table entry for a function on arrays; scalars become arrays of one element."""

    def make(site: CallSite) -> Implementation:
        if any(isinstance(a, VectorType) for a in site.arguments):
            return function
        types = site.arguments
        return lambda *args: scalar(
            function(*(vector([a], t) for a, t in zip(args, types, strict=True)))[0], site.result
        )

    return make


def _single(function: Elementwise) -> Elementwise:
    """Compute exact functions of bfloat in float."""

    def run(*args: Array) -> Array:
        if args[0].dtype != BFLOAT16:
            return function(*args)
        return function(*(a.astype(np.float32) for a in args)).astype(BFLOAT16)

    return run


def _wide(function: Elementwise) -> Elementwise:
    """Compute elementary functions in double, those of double in long double."""

    def run(*args: Array) -> Array:
        wide = np.longdouble if args[0].dtype == np.float64 else np.float64
        return to_float(function(*(a.astype(wide) for a in args)), args[0].dtype)

    return run


# fma -----------------------------------------------------------------------------------------------------------------


@cache
def _libm_fma() -> Callable[[float, float, float], float]:
    function = ctypes.CDLL(None).fma
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * 3
    return function


def fma(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` rounded once: for double by the C library, for narrower types in double with round to odd.

    The product of two floats is exact in double. The sum is rounded to odd there (its error is known exactly by
    Knuth's TwoSum), and rounding that to float is rounding once.
    """
    if a.dtype == np.float64:
        exact = _libm_fma()
        return np.array([exact(x, y, z) for x, y, z in zip(a, b, c, strict=True)], np.float64)
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    if a.dtype == np.float32 and not _may_round_twice(total):
        return total.astype(np.float32)
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    return to_float(to_odd(total, error), a.dtype)


def _may_round_twice(total: Array) -> bool:
    """Whether any double is exactly between two floats, or not zero but so small that floats are subnormal."""
    bits = total.view(np.uint64)
    between = (bits & _FLOAT_TAIL) == _FLOAT_HALF
    return bool(np.count_nonzero(between | ((bits << _ONE) - _ONE < _SMALLEST_NORMAL)))


# The low bits of a double that a float lacks, their value half way between two floats, and the smallest normal float as
# a double without its sign, minus one: zero minus one wraps around to a larger number.
_ONE: Final = np.uint64(1)
_FLOAT_TAIL: Final = np.uint64((1 << 29) - 1)
_FLOAT_HALF: Final = np.uint64(1 << 28)
_SMALLEST_NORMAL: Final = (np.array(np.finfo(np.float32).tiny, np.float64).view(np.uint64) << _ONE) - _ONE


def fmuladd(a: Array, b: Array, c: Array) -> Array:
    """`llvm.fmuladd` may fuse or not; here it does."""
    return fma(a, b, c)


# Rounding, minimum and maximum ---------------------------------------------------------------------------------------


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(x.dtype), x)


def minimum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 minimum: NaN if either is, -0 below +0."""
    return np.where((a == b) & np.signbit(a), a, np.where(a == b, b, np.minimum(a, b)))


def maximum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 maximum: NaN if either is, +0 above -0."""
    return np.where((a == b) & np.signbit(a), b, np.where(a == b, a, np.maximum(a, b)))


def minimum_number(a: Array, b: Array) -> Array:
    """The smaller number; of a number and a NaN the number."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, minimum(a, b)))


def maximum_number(a: Array, b: Array) -> Array:
    """The larger number; of a number and a NaN the number."""
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, maximum(a, b)))


def _power(a: Array, b: Array) -> Array:
    return np.power(a, b)


def _power_of_ten(a: Array) -> Array:
    return np.power(a.dtype.type(10), a)


def _same(a: Array) -> Array:
    return a


def _integer_power(site: CallSite) -> Implementation:
    element = scalar_of(site.result)
    wide = np.longdouble

    def run(base: RuntimeValue, exponent: RuntimeValue) -> RuntimeValue:
        power = signed(exponent, 32)
        result = to_float(np.power(np.atleast_1d(base).astype(wide), power), element_dtype(element))
        return result if isinstance(site.result, VectorType) else result[0]

    return run


def _load_exponent(a: Array, b: Array) -> Array:
    return to_float(np.ldexp(a.astype(np.longdouble), b.view(np.int32)), a.dtype)


def _saturating(*, is_signed: bool) -> ImplementationFactory:
    def make(site: CallSite) -> Implementation:
        element = scalar_of(site.result)
        assert isinstance(element, IntType)

        def clamp(a: Array) -> Array:
            return saturated(a, element, is_signed=is_signed)

        return elementwise(clamp)(site)

    return make


def _nearest_integer(rounded: Callable[[Array], Array]) -> ImplementationFactory:
    """`llvm.lrint`, `llvm.lround` and their variants; LLVM leaves numbers that do not fit open, here they saturate."""
    whole = _single(rounded)

    def make(site: CallSite) -> Implementation:
        element = scalar_of(site.result)
        assert isinstance(element, IntType)

        def nearest(a: Array) -> Array:
            return saturated(whole(a), element, is_signed=True)

        return elementwise(nearest)(site)

    return make


def _has_class(value: Array, mask: Array) -> Array:
    """`llvm.is.fpclass`: signalling and quiet NaN are told apart by the top bit of the fraction."""
    bits = value.view(f"u{value.dtype.itemsize}")
    fraction = {2: 9, 4: 22, 8: 51}[value.dtype.itemsize] if value.dtype != BFLOAT16 else 6
    wide = value.astype(np.float64)
    tiny = smallest_normal(value.dtype)
    nan, negative = np.isnan(wide), np.signbit(wide)
    quiet = ((bits >> fraction) & 1).astype(np.bool_)
    size = np.abs(wide)
    kinds = [size == np.inf, (size >= tiny) & (size < np.inf), (size > 0) & (size < tiny), size == 0]
    tests = [nan & ~quiet, nan & quiet]
    tests += [k & negative for k in kinds] + [k & ~negative for k in reversed(kinds)]
    classes = int(np.atleast_1d(mask)[0])
    return (
        np.any([t for k, t in enumerate(tests) if classes >> k & 1], axis=0) if classes else np.zeros(nan.shape, bool)
    )


def _is_class_entry(site: CallSite) -> Implementation:
    def run(value: RuntimeValue, mask: RuntimeValue) -> RuntimeValue:
        if isinstance(site.result, VectorType):
            return _has_class(value, mask)
        return int(_has_class(vector([value], site.arguments[0]), mask)[0])

    return run


def _from_small(site: CallSite) -> Implementation:
    """`llvm.convert.from.arbitrary.fp`, which is exact."""
    format_, element = format_named(site.metadata[0]), element_dtype(scalar_of(site.result))

    def run(codes: RuntimeValue) -> RuntimeValue:
        numbers = to_float(format_.decoded(np.atleast_1d(codes)), element)
        return numbers if isinstance(site.result, VectorType) else numbers[0]

    return run


def _to_small(site: CallSite) -> Implementation:
    """`llvm.convert.to.arbitrary.fp`, which rounds once, to nearest even."""
    format_ = format_named(site.metadata[0])

    def run(numbers: RuntimeValue, saturates: RuntimeValue) -> RuntimeValue:
        codes = format_.encoded(np.atleast_1d(numbers), saturates=bool(saturates))
        return codes if isinstance(site.result, VectorType) else int(codes[0])

    return run


FLOAT_INTRINSICS: Final[FunctionTable] = {
    "convert.from.arbitrary.fp": _from_small,
    "convert.to.arbitrary.fp": _to_small,
    "fma": elementwise(fma),
    "fmuladd": elementwise(fmuladd),
    "is.fpclass": _is_class_entry,
    "powi": _integer_power,
    "ldexp": elementwise(_load_exponent),
    "fptosi.sat": _saturating(is_signed=True),
    "fptoui.sat": _saturating(is_signed=False),
    "sqrt": elementwise(_single(np.sqrt)),
    "fabs": elementwise(_single(np.abs)),
    "floor": elementwise(_single(np.floor)),
    "ceil": elementwise(_single(np.ceil)),
    "trunc": elementwise(_single(np.trunc)),
    "rint": elementwise(_single(np.rint)),
    "nearbyint": elementwise(_single(np.rint)),
    "roundeven": elementwise(_single(np.rint)),
    "round": elementwise(_single(_round_away)),
    **{name: _nearest_integer(np.rint) for name in ("lrint", "llrint")},
    **{name: _nearest_integer(_round_away) for name in ("lround", "llround")},
    "copysign": elementwise(_single(np.copysign)),
    "canonicalize": elementwise(_same),
    "arithmetic.fence": elementwise(_same),
    "minimum": elementwise(_single(minimum)),
    "maximum": elementwise(_single(maximum)),
    "minnum": elementwise(_single(minimum_number)),
    "maxnum": elementwise(_single(maximum_number)),
    "minimumnum": elementwise(_single(minimum_number)),
    "maximumnum": elementwise(_single(maximum_number)),
    "pow": elementwise(_wide(_power)),
    **{
        name: elementwise(_wide(getattr(np, name)))
        for name in "exp exp2 log log2 log10 sin cos tan sinh cosh tanh".split()
    },
    "exp10": elementwise(_wide(_power_of_ten)),
    **{name: elementwise(_wide(getattr(np, f"arc{name[1:]}"))) for name in "asin acos atan atan2".split()},
}
IntegerFunction = Callable[[int, int], int] | Callable[[int, int, int], int] | Callable[[int, int, int, int], int]
VectorFunction = Callable[..., Array]


def lanewise(function: IntegerFunction, fast: VectorFunction | None = None) -> ImplementationFactory:
    """A table entry for a function (bits, *numbers) -> number; `fast` does the same on arrays of native width."""

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
    """`llvm.sadd.with.overflow` and its variants: {wrapped result, whether it was wrapped}."""

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
