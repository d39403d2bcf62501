"""Correct rounding on machines without the instruction: to integers, to odd, and of fused multiply-adds.

Exact for all inputs: signed zeros, infinities, NaN, and numbers so large that they are integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import DOUBLE, FLOAT, I32, I64, IntType, Type, VectorType
from tlx.ir.values import Value
from tlx.lower.legalize.registers import splat_like
from tlx.lower.operations import ElementwiseOp

ROUNDINGS: Final = ("floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round")


def rounded_to_integer(b: Builder, name: str, x: Value) -> Value:
    """A register rounded to integers as `llvm.<name>` does.

    |x| + 2^23 - 2^23 is |x| rounded to the nearest integer (2^52 for double); the other roundings correct that.
    """
    size = _magnitude(b, x)
    nearest = _nearest(b, size)
    if name in ("floor", "ceil"):
        result = _toward(b, name, x, _signed(b, nearest, x))
    elif name == "trunc":
        result = _down(b, nearest, size)
    elif name == "round":
        below = _down(b, nearest, size)
        half = compare(b, "oge", b.binary("fsub", size, below), splat_like(x, 0.5))
        result = b.binary("fadd", below, b.select(half, splat_like(x, 1.0), splat_like(x, 0.0)))
    else:
        result = nearest
    is_small = compare(b, "olt", size, splat_like(x, _first_whole(x)))
    # The sign comes last: LLVM 19 to 22 select a wrong vpternlog for `select(c, signed(result, x), x)`.
    return _signed(b, b.select(is_small, result, size), x)


def _nearest(b: Builder, size: Value) -> Value:
    shift = splat_like(size, _first_whole(size))
    return b.binary("fsub", b.binary("fadd", size, shift), shift)


def _down(b: Builder, nearest: Value, size: Value) -> Value:
    """The nearest integer, or the one below if the nearest is larger than the number."""
    above = compare(b, "ogt", nearest, size)
    return b.binary("fsub", nearest, b.select(above, splat_like(size, 1.0), splat_like(size, 0.0)))


def _toward(b: Builder, name: str, x: Value, nearest: Value) -> Value:
    predicate, opcode = ("ogt", "fsub") if name == "floor" else ("olt", "fadd")
    beyond = compare(b, predicate, nearest, x)
    return b.binary(opcode, nearest, b.select(beyond, splat_like(x, 1.0), splat_like(x, 0.0)))


def fma_rounded_once(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The sum x * y + z of float registers, rounded once.

    The product is exact in double; the sum is rounded to odd, so that rounding it again to float is correct.
    """
    type_ = x.type
    assert isinstance(type_, VectorType)
    total = fma_rounded_to_odd(b, x, y, z)
    return b.cast("fptrunc", total, type_)


def fma_rounded_to_odd(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """The sum x * y + z of float registers as double, rounded to odd."""
    type_ = x.type
    assert isinstance(type_, VectorType)
    wide = VectorType(type_.count, DOUBLE)
    product = b.binary("fmul", b.cast("fpext", x, wide), b.cast("fpext", y, wide))
    return _sum_rounded_to_odd(b, product, b.cast("fpext", z, wide))


def _sum_rounded_to_odd(b: Builder, x: Value, y: Value) -> Value:
    """The sum x + y rounded to odd: where it is inexact, the neighbour whose last bit is 1."""
    total = b.binary("fadd", x, y)
    part = b.binary("fsub", total, x)
    error = b.binary("fadd", b.binary("fsub", x, b.binary("fsub", total, part)), b.binary("fsub", y, part))
    bits = as_bits(b, total)
    is_even = b.icmp("eq", b.binary("and", bits, splat_like(bits, 1)), splat_like(bits, 0))
    inexact = compare(b, "one", error, splat_like(error, 0.0))
    outward = b.icmp("sge", b.binary("xor", bits, as_bits(b, error)), splat_like(bits, 0))
    step = b.select(outward, splat_like(bits, 1), splat_like(bits, -1))
    change = b.select(b.binary("and", is_even, inexact), step, splat_like(bits, 0))
    return b.cast("bitcast", b.binary("add", bits, change), total.type)


def float_rounded_to_odd(b: Builder, x: Value) -> Value:
    """A register of double as float, rounded to odd: rounding it again, to 16 bits, is correct."""
    type_ = x.type
    assert isinstance(type_, VectorType)
    near = b.cast("fptrunc", x, VectorType(type_.count, FLOAT))
    back = b.cast("fpext", near, type_)
    bits = as_bits(b, near)
    size, back_size = _magnitude(b, x), _magnitude(b, back)
    narrow = VectorType(type_.count, I32)
    outward = b.cast("sext", compare(b, "ogt", back_size, size), narrow)
    inexact = b.cast("zext", compare(b, "one", back_size, size), narrow)
    odd = b.binary("or", b.binary("add", bits, outward), inexact)
    return b.cast("bitcast", odd, near.type)


def compare(b: Builder, predicate: str, x: Value, y: Value) -> Value:
    """`fcmp`."""
    assert isinstance(x.type, VectorType)
    return ElementwiseOp("fcmp", (), predicate).emit(b, VectorType(x.type.count, IntType(1)), [x, y], "is")


def as_bits(b: Builder, x: Value) -> Value:
    """A register of floats as integers of their bits."""
    assert isinstance(x.type, VectorType)
    return b.cast("bitcast", x, VectorType(x.type.count, I64 if x.type.element == DOUBLE else I32))


def _magnitude(b: Builder, x: Value) -> Value:
    return _by_bits(b, x, lambda bits: b.binary("and", bits, splat_like(bits, _most(bits))))


def _signed(b: Builder, size: Value, sign: Value) -> Value:
    """`size` with the sign of `sign`."""
    bits = as_bits(b, sign)
    mask = b.binary("and", bits, splat_like(bits, -_most(bits) - 1))
    return _by_bits(b, size, lambda s: b.binary("or", b.binary("and", s, splat_like(s, _most(s))), mask))


def _by_bits(b: Builder, x: Value, change: Callable[[Value], Value]) -> Value:
    return b.cast("bitcast", change(as_bits(b, x)), x.type)


def _most(bits: Value) -> int:
    """The largest signed integer: all bits but the sign."""
    return (1 << (_int_element(bits).bits - 1)) - 1


def _int_element(bits: Value) -> IntType:
    assert isinstance(bits.type, VectorType)
    assert isinstance(bits.type.element, IntType)
    return bits.type.element


def _first_whole(x: Value) -> float:
    return 2.0**52 if _element(x) == DOUBLE else 2.0**23


def _element(x: Value) -> Type:
    assert isinstance(x.type, VectorType)
    return x.type.element
