"""Element conversions of registers, in forms that every LLVM from 14 on selects good code for."""

from __future__ import annotations

from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I16, I32, I64, IntType, Type, VectorType
from tlx.ir.values import Value, const_float, const_ints, const_vector
from tlx.lower.legalize.math.rounding import float_rounded_to_odd
from tlx.target.target import Target

_NARROW: Final = (BFLOAT, HALF)


def convert_register(b: Builder, target: Target, opcode: str, register: Value, source: Type, to: Type) -> Value:
    """One register converted from element type `source` to `to`.

    Args:
        b: The builder.
        target: The machine, which may have instructions for some conversions.
        opcode: LLVM's cast.
        register: The register; bfloat and half as i16.
        source: Its element type.
        to: The element type of the result.
    """
    type_ = register.type
    assert isinstance(type_, VectorType)
    if opcode == "bitcast":
        return b.cast(opcode, register, VectorType(type_.count, I16 if to in _NARROW else to))
    if source in _NARROW:
        wide = narrow_to_float(b, target, register, source)
        return float_to_narrow(b, target, wide, to) if to in _NARROW else _cast(b, opcode, wide, to)
    if to not in _NARROW:
        return _cast(b, opcode, register, to)
    if isinstance(source, IntType):
        return float_to_narrow(b, target, _integer_to_float(b, opcode, register, source, to), to)
    return float_to_narrow(b, target, float_rounded_to_odd(b, register) if source == DOUBLE else register, to)


def narrow_to_float(b: Builder, target: Target, register: Value, source: Type) -> Value:
    """A register of bfloat or half as float."""
    count = _count(register)
    if source == BFLOAT:
        return _from_bfloat(b, register, count)
    if not target.converts_half:
        return _from_half(b, register, count)
    return b.cast("fpext", b.cast("bitcast", register, VectorType(count, HALF)), VectorType(count, FLOAT))


def float_to_narrow(b: Builder, target: Target, register: Value, to: Type) -> Value:
    """A register of float as bfloat or half, rounded to nearest even."""
    count = _count(register)
    if to == BFLOAT:
        return _to_bfloat(b, register, count)
    if not target.converts_half:
        return _to_half(b, register, count)
    return b.cast("bitcast", b.cast("fptrunc", register, VectorType(count, HALF)), VectorType(count, I16))


def _integer_to_float(b: Builder, opcode: str, register: Value, source: IntType, to: Type) -> Value:
    """Integers as floats that round to `to` as the integers do.

    For half, integers that are inexact in float are beyond half's range anyway. For bfloat, i32 is exact in double; for
    i64 beyond 2**53 the bits that double lacks become a sticky bit.
    """
    count = _count(register)
    if to == HALF or source.bits <= 16:
        return b.cast(opcode, register, VectorType(count, FLOAT))
    if source.bits > 32:
        register = _sticky(b, opcode, register, count)
    return float_rounded_to_odd(b, b.cast(opcode, register, VectorType(count, DOUBLE)))


def _sticky(b: Builder, opcode: str, register: Value, count: int) -> Value:
    low = b.binary("and", register, _ints(count, 0xFFF, I64))
    any_low = b.cast("zext", b.icmp("ne", low, _ints(count, 0, I64)), VectorType(count, I64))
    marked = b.binary("or", b.binary("xor", register, low), b.binary("shl", any_low, _ints(count, 11, I64)))
    if opcode == "sitofp":
        beyond = b.binary("add", register, _ints(count, 1 << 53, I64))
        is_large = b.icmp("ugt", beyond, _ints(count, 1 << 54, I64))
    else:
        is_large = b.icmp("ugt", register, _ints(count, 1 << 53, I64))
    return b.select(is_large, marked, register)


def _cast(b: Builder, opcode: str, register: Value, to: Type) -> Value:
    return b.cast(opcode, register, VectorType(_count(register), to))


def _count(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count


def _ints(count: int, number: int, type_: IntType = I32) -> Value:
    return const_ints(type_, [number] * count)


def _from_bfloat(b: Builder, bits: Value, count: int) -> Value:
    """Bfloat is the upper half of a float."""
    wide = b.cast("zext", bits, VectorType(count, I32))
    return b.cast("bitcast", b.binary("shl", wide, _ints(count, 16)), VectorType(count, FLOAT))


def _to_bfloat(b: Builder, value: Value, count: int) -> Value:
    """Round to nearest even on the bits; NaN stays NaN (its quiet bit is set)."""
    bits = b.cast("bitcast", value, VectorType(count, I32))
    odd = b.binary("and", b.binary("lshr", bits, _ints(count, 16)), _ints(count, 1))
    rounded = b.binary("add", bits, b.binary("add", odd, _ints(count, 0x7FFF)))
    quiet = b.binary("or", bits, _ints(count, 0x400000))
    is_nan = _unordered(b, value, count)
    chosen = b.select(is_nan, quiet, rounded)
    return b.cast("trunc", b.binary("lshr", chosen, _ints(count, 16)), VectorType(count, I16))


def _unordered(b: Builder, value: Value, count: int) -> Value:
    body = f"fcmp uno {value.typed}, {value}"
    return b.value("fcmp", VectorType(count, I1), [value, value], body)


def _from_half(b: Builder, value: Value, count: int) -> Value:
    """Shift exponent and mantissa to their place in a float and scale by 2**112, which also normalises denormals."""
    bits = b.cast("zext", value, VectorType(count, I32))
    sign = b.binary("shl", b.binary("and", bits, _ints(count, 0x8000)), _ints(count, 16))
    rest = b.binary("and", bits, _ints(count, 0x7FFF))
    shifted = b.binary("shl", rest, _ints(count, 13))
    scale = const_vector([const_float(FLOAT, 2.0**112)] * count)
    scaled = b.binary("fmul", b.cast("bitcast", shifted, VectorType(count, FLOAT)), scale)
    finite = b.cast("bitcast", scaled, VectorType(count, I32))
    special = b.binary("or", shifted, _ints(count, 0x7F800000))
    magnitude = b.select(b.icmp("ugt", rest, _ints(count, 0x7BFF)), special, finite)
    return b.cast("bitcast", b.binary("or", magnitude, sign), VectorType(count, FLOAT))


def _to_half(b: Builder, value: Value, count: int) -> Value:
    """Round to nearest even: normals on the bits, denormals by adding a float whose last place is 2**-24."""
    wide = VectorType(count, I32)
    bits = b.cast("bitcast", value, wide)
    sign = b.binary("and", bits, _ints(count, -0x80000000))
    rest = b.binary("xor", bits, sign)
    odd = b.binary("and", b.binary("lshr", rest, _ints(count, 13)), _ints(count, 1))
    bias = b.binary("add", odd, _ints(count, ((15 - 127) << 23) + 0xFFF))
    normal = b.binary("lshr", b.binary("add", rest, bias), _ints(count, 13))
    half_ulp = const_vector([const_float(FLOAT, 0.5)] * count)
    shifted = b.binary("fadd", b.cast("bitcast", rest, VectorType(count, FLOAT)), half_ulp)
    denormal = b.binary("sub", b.cast("bitcast", shifted, wide), _ints(count, 0x3F000000))
    finite = b.select(b.icmp("ult", rest, _ints(count, 113 << 23)), denormal, normal)
    is_nan = b.icmp("ugt", rest, _ints(count, 0x7F800000))
    special = b.select(is_nan, _ints(count, 0x7E00), _ints(count, 0x7C00))
    magnitude = b.select(b.icmp("ugt", rest, _ints(count, 0x477FFFFF)), special, finite)
    result = b.binary("or", magnitude, b.binary("lshr", sign, _ints(count, 16)))
    return b.cast("trunc", result, VectorType(count, I16))
