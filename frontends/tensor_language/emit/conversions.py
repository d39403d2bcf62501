"""Constants and casts; the rules, which choose between scalars and matrices, are in `matrix_arithmetic`.

Integers to floats round to nearest, ties to even, once: where a narrow float is reached by way of a wider one, the way
rounds to odd (an inexact value gets an odd last bit), after which the second rounding gives what one would have given.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.ast.mixed import Cast, Constant
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.intervals import interval, within
from tlx.frontends.tensor_language.emit.numbers import (
    call,
    compare,
    constant,
    fits,
    full_like,
    narrowed,
    typed_like,
)
from tlx.frontends.tensor_language.emit.values import Linear, Number, Parts, register_type
from tlx.frontends.tensor_language.types import F64, ScalarType
from tlx.ir.types import DOUBLE, FLOAT, I1, I32
from tlx.ir.values import Value, const_int


def constant_rule(e: Emitter, i: Constant) -> None:
    """`%r = constant 1.0 : type` of a scalar."""
    assert isinstance(i.type, ScalarType)
    e.bind(i.result, constant(i.type, i.value))


def cast(e: Emitter, i: Cast) -> None:
    """`%r = cast %a : type` of a scalar."""
    assert isinstance(i.type, ScalarType)
    e.bind(i.result, _converted(e, e.number(i.operand), i.type))


def _converted(e: Emitter, number: Number, type_: ScalarType) -> Number:
    """A number cast to a type."""
    if number.type == type_:
        return number
    known = within(type_, interval(number)) if number.type.kind == type_.kind == "int" else None
    return Number(type_, convert(e, number.parts, number.type, type_), _linear(e, number, type_), known)


def _linear(e: Emitter, number: Number, type_: ScalarType) -> Linear | None:
    """How the lanes of a cast integer grow: where sums wrapped around, those of a wider one do not grow evenly."""
    linear = number.linear
    if linear is None or type_.kind != "int":
        return None
    base = _integer(e, linear.base, number.type, type_)
    if type_.bits <= number.type.bits:
        return Linear(base, linear.step, fits(e, base, linear.step))
    return Linear(base, linear.step, exact=True) if linear.exact else None


def convert(e: Emitter, parts: Parts, source: ScalarType, type_: ScalarType) -> Parts:
    """Parts of one type cast to another; what is not real stays complex."""
    if source == type_:
        return parts
    if type_.kind == "complex":
        found = tuple(_real(e, part, source.part, type_.part) for part in parts)
        return found if len(found) == 2 else (*found, full_like(found[0], 0.0))
    return (_real(e, parts[0], source, type_),)


def _real(e: Emitter, value: Value, source: ScalarType, type_: ScalarType) -> Value:
    if source.kind in ("int", "bool"):
        return (
            _integer(e, value, source, type_) if type_.kind in ("int", "bool") else _to_float(e, value, source, type_)
        )
    if type_.kind == "int":
        result = typed_like(value, register_type(type_))
        return e.b.call_intrinsic("llvm.fptosi.sat", [result, value.type], result, [value])
    if type_ == F64:
        return e.b.cast("fpext", value, typed_like(value, DOUBLE))
    if source == F64:
        value = _to_odd(e, value) if type_.is_narrow_float else e.b.cast("fptrunc", value, typed_like(value, FLOAT))
    return narrowed(e, value, type_)


def _integer(e: Emitter, value: Value, source: ScalarType, type_: ScalarType) -> Value:
    if source.bits == type_.bits:
        return value
    opcode = "trunc" if source.bits > type_.bits else "zext" if source.kind == "bool" else "sext"
    return e.b.cast(opcode, value, typed_like(value, register_type(type_)))


def _to_float(e: Emitter, value: Value, source: ScalarType, type_: ScalarType) -> Value:
    opcode = "uitofp" if source.kind == "bool" else "sitofp"
    if not type_.is_narrow_float or source.bits <= 16:
        found = e.b.cast(opcode, value, typed_like(value, register_type(type_)))
        return narrowed(e, found, type_)
    exact = _sticky(e, value) if source.bits == 64 else value
    return narrowed(e, _to_odd(e, e.b.cast(opcode, exact, typed_like(value, DOUBLE))), type_)


def _sticky(e: Emitter, value: Value) -> Value:
    """An i64 that a double holds exactly, and that rounds to a narrow float as the given one does.

    From 2^53 on, the lowest eleven bits are folded into the twelfth.
    """
    magnitude = e.b.call_intrinsic("llvm.abs", [value.type], value.type, [value, const_int(I1, 0)])
    large = compare(e, "icmp", "uge", magnitude, full_like(value, 1 << 53))
    low = e.b.binary("and", value, full_like(value, 0x7FF))
    lost = compare(e, "icmp", "ne", low, full_like(value, 0))
    high = e.b.binary("and", value, full_like(value, -0x800))
    folded = e.b.binary("or", high, e.b.select(lost, full_like(value, 0x800), full_like(value, 0)))
    return e.b.select(large, folded, value)


def _to_odd(e: Emitter, value: Value) -> Value:
    """A double as a float, rounded to odd."""
    bits_type = typed_like(value, I32)
    nearest = e.b.cast("fptrunc", value, typed_like(value, FLOAT))
    back = e.b.cast("fpext", nearest, value.type)
    bits = e.b.cast("bitcast", nearest, bits_type)
    too_large = compare(e, "fcmp", "ogt", call(e, "llvm.fabs", [back]), call(e, "llvm.fabs", [value]))
    towards_zero = e.b.select(too_large, e.b.binary("sub", bits, full_like(bits, 1)), bits)
    inexact = compare(e, "fcmp", "one", back, value)
    odd = e.b.binary("or", towards_zero, full_like(bits, 1))
    return e.b.cast("bitcast", e.b.select(inexact, odd, bits), nearest.type)
