"""Conversions from and to formats of 8 bits (`tlx.intrinsics.small_floats`), by ordinary instructions.

The bits of a byte are put in the place of those of a wider format. e5m2 is the upper byte of a half:

    half = byte << 8

e4m3 becomes a half of 2^-8 times the number, as the biases of the exponents differ by 8; a machine that converts halves
also normalises subnormal numbers:

    s eeee mmm    ->    s 0eeee mmm0000000          float = 2^8 * half

Other machines adjust the exponent in the bits of a float. Subnormal numbers m * 2^-9 get the exponent of the smallest
normal one, which is subtracted:

    float = rest << 20, plus 120 << 23              rest: the byte without its sign
    float = (rest << 20, plus 121 << 23) - 2^-6     if the exponent is zero

No step computes with subnormal floats, which may be slow or flushed to zero.

To a format of 8 bits, normal numbers are rounded on the bits, by adding almost half of the last place. A subnormal one
is added to a float whose last place is that of the format. Doubles are first rounded to odd.

The functions are for registers. `replace_small_conversions` rewrites calls in functions that are not kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.intrinsics.small_floats import E5M2, SmallFloat, is_conversion
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import replace_uses
from tlx.ir.tensors.conversions import SmallConversion
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, Type, VectorType, scalar_of
from tlx.ir.values import Keyword, Value
from tlx.lower.legalize.conversions import (
    as_bits,
    convert_register,
    float_rounded_to_odd,
    float_to_narrow,
    narrow_to_float,
)
from tlx.lower.legalize.registers import splat_like
from tlx.target.target import Target

_NARROW: Final = (BFLOAT, HALF)
_FRACTION: Final = 23
_BIAS: Final = 127
_HALF_FRACTION: Final = 10
_HALF_BIAS: Final = 15
_INFINITY: Final = 0x7F800000
_FLOAT_NAN: Final = 0x7FC00000
_MAGNITUDE: Final = 0x7F


def convert_small(
    b: Builder, target: Target, conversion: SmallConversion, register: Value, source: Type, to: Type
) -> Value:
    """One register converted from or to a format of 8 bits; bfloat and half are i16, as in all registers."""
    if not conversion.widens:
        return _to_small(b, conversion, _as_float(b, target, register, source))
    if conversion.format == E5M2:
        half = b.binary("shl", b.cast("zext", register, _like(register, I16)), _splat(register, I16, 8))
        return half if to == HALF else _from_float(b, target, narrow_to_float(b, target, half, HALF), to)
    expand = _from_e4m3_by_half if target.narrow_floats.converts_half else _from_e4m3
    return _from_float(b, target, expand(b, target, conversion.format, register), to)


def _as_float(b: Builder, target: Target, register: Value, source: Type) -> Value:
    """A register of numbers as float, from which rounding to a format of 8 bits gives the same as from the numbers."""
    if source == DOUBLE:
        return float_rounded_to_odd(b, register)
    return narrow_to_float(b, target, register, source) if source in _NARROW else register


def _from_float(b: Builder, target: Target, register: Value, to: Type) -> Value:
    """A register of floats, whose numbers are exact in every type, as another one."""
    if to == BFLOAT and not target.narrow_floats.converts_bfloat:
        upper = b.binary("lshr", as_bits(b, register), _splat(register, I32, 16))
        return b.cast("trunc", upper, _like(register, I16))
    if to in _NARROW:
        return float_to_narrow(b, target.narrow_floats, register, to)
    return register if to == FLOAT else convert_register(b, target, "fpext", register, FLOAT, to)


def _from_e4m3_by_half(b: Builder, target: Target, format_: SmallFloat, register: Value) -> Value:
    shift = _HALF_FRACTION - format_.mantissa_bits
    bits = b.binary("shl", b.cast("sext", register, _like(register, I16)), _splat(register, I16, shift))
    half = b.binary("and", bits, _splat(register, I16, ~(1 << (7 + shift))))  # the sign's copy below the sign
    scale = _splat(register, FLOAT, 2.0 ** (_HALF_BIAS - format_.bias))
    number = b.binary("fmul", narrow_to_float(b, target, half, HALF), scale)
    return _with_nan(b, format_, register, number)


def _from_e4m3(b: Builder, _target: Target, format_: SmallFloat, register: Value) -> Value:
    shift, exponent = _FRACTION - format_.mantissa_bits, _BIAS - format_.bias
    words = b.cast("zext", register, _like(register, I32))
    rest = b.binary("and", words, splat_like(words, _MAGNITUDE))
    place = b.binary("shl", rest, splat_like(words, shift))
    normal = b.binary("add", place, splat_like(words, exponent << _FRACTION))
    raised = b.cast(
        "bitcast", b.binary("add", place, splat_like(words, (exponent + 1) << _FRACTION)), _like(words, FLOAT)
    )
    least = splat_like(raised, 2.0 ** (1 - format_.bias))
    subnormal = as_bits(b, b.binary("fsub", raised, least))
    is_subnormal = b.icmp("ult", rest, splat_like(words, 1 << format_.mantissa_bits))
    magnitude = b.select(is_subnormal, subnormal, normal)
    magnitude = b.select(b.icmp("eq", rest, splat_like(words, format_.nan)), splat_like(words, _FLOAT_NAN), magnitude)
    sign = b.binary("shl", b.binary("xor", words, rest), splat_like(words, 24))
    return b.cast("bitcast", b.binary("or", magnitude, sign), _like(words, FLOAT))


def _with_nan(b: Builder, format_: SmallFloat, register: Value, number: Value) -> Value:
    rest = b.binary("and", register, splat_like(register, _MAGNITUDE))
    return b.select(b.icmp("eq", rest, splat_like(register, format_.nan)), splat_like(number, float("nan")), number)


def _to_small(b: Builder, conversion: SmallConversion, register: Value) -> Value:
    """Floats rounded to the format, to nearest even."""
    format_, bits = conversion.format, as_bits(b, register)
    shift = _FRACTION - format_.mantissa_bits
    rest = b.binary("and", bits, splat_like(bits, 0x7FFFFFFF))
    odd = b.binary("and", b.binary("lshr", rest, splat_like(bits, shift)), splat_like(bits, 1))
    rounding = ((format_.bias - _BIAS) << _FRACTION) + (1 << (shift - 1)) - 1
    normal = b.binary(
        "lshr", b.binary("add", rest, b.binary("add", odd, splat_like(bits, rounding))), splat_like(bits, shift)
    )
    exponent = _BIAS + 1 - format_.bias + shift  # of floats whose last place is that of the format's least numbers
    place = splat_like(register, 2.0 ** (exponent - _BIAS))
    total = b.binary("fadd", b.cast("bitcast", rest, register.type), place)
    subnormal = b.binary("sub", as_bits(b, total), splat_like(bits, exponent << _FRACTION))
    is_subnormal = b.icmp("ult", rest, splat_like(bits, (_BIAS + 1 - format_.bias) << _FRACTION))
    code = b.select(is_subnormal, subnormal, normal)
    beyond = format_.largest if conversion.saturates else format_.beyond
    code = b.select(b.icmp("ugt", code, splat_like(bits, format_.largest)), splat_like(bits, beyond), code)
    code = b.select(b.icmp("ugt", rest, splat_like(bits, _INFINITY)), splat_like(bits, format_.nan), code)
    sign = b.binary("lshr", b.binary("xor", bits, rest), splat_like(bits, 24))
    return b.cast("trunc", b.binary("or", code, sign), _like(bits, I8))


def replace_small_conversions(module: Module, own: Sequence[Function], target: Target) -> None:
    """Replace the calls in all functions of a module, on numbers and vectors; remove the declarations.

    A program's own functions (`own`) do not have the target's features, which its instructions for half need.
    """
    floats = target.narrow_floats
    if floats.half_conversions is not None:
        floats = replace(floats, half_conversions=None, converts_half=False)
    plain = replace(target, narrow_floats=floats)
    targets = dict.fromkeys((function.name for function in own), plain)
    for function in module.functions:
        for block in function.blocks:
            for call in [i for i in block.instructions if i.is_call and is_conversion(i.callee or "")]:
                b = Builder(module, function, block, block.instructions.index(call))
                b.debug, b.span = call.debug_location, call.span
                replace_uses(function, str(call.result), _replacement(b, targets.get(function.name, target), call))
                block.instructions.remove(call)
    module.remove(*(item for name, item in module.declarations.items() if is_conversion(name)))


def _replacement(b: Builder, target: Target, call: Instruction) -> Value:
    operand, is_scalar = call.args[0], not isinstance(call.type, VectorType)
    source, to = scalar_of(operand.type), scalar_of(call.type)
    if is_scalar:
        operand = b.insert_element(Keyword(VectorType(1, source), "poison"), operand, 0)
    if source in _NARROW:
        operand = b.cast("bitcast", operand, _like(operand, I16))
    conversion = SmallConversion.of((call.callee or "").strip('"'), call.args)
    result = convert_small(b, target, conversion, operand, source, to)
    if to in _NARROW:
        result = b.cast("bitcast", result, _like(result, to))
    return b.extract_element(result, 0) if is_scalar else result


def _like(register: Value, element: Type) -> VectorType:
    """The type of registers with as many lanes."""
    assert isinstance(register.type, VectorType)
    return VectorType(register.type.count, element)


def _splat(register: Value, element: Type, number: float) -> Value:
    """A number in as many lanes."""
    return splat_like(Keyword(_like(register, element), "poison"), number)
