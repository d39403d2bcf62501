"""Arithmetic, comparisons, functions, constants and casts.

The functions work on parts (LLVM values in register types), scalars as well as vectors of any length. The rules of the
operators, which choose between scalars and matrices, are in `matrices`.

    exp(a + bi)  = exp(a) (cos b + i sin b)
    exp2(a + bi) = exp2(a) (cos(b ln 2) + i sin(b ln 2))

Numbers with b = 0 stay real where exp(a) is infinite.

Conversions of integers to floats round once, to nearest, ties to even. A conversion to a narrow float through a wider
one rounds to odd first (an inexact value gets an odd last bit), which makes the second rounding correct.
"""

from __future__ import annotations

import math
from typing import Final

from tlx.frontends.tensor_language.emit.emitter import (
    Emitter,
    Linear,
    Number,
    Parts,
    binary_interval,
    clamped_interval,
    interval_of,
    register_type,
)
from tlx.frontends.tensor_language.emit.numbers import (
    call,
    compare,
    fits_without_wrap,
    full_like,
    negated,
    round_to_type,
    typed_like,
    undefined,
    unify_numbers,
)
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, ArithUnary, Comparison, Math
from tlx.frontends.tensor_language.types import BOOL, F64, ScalarType
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import DOUBLE, FLOAT, I1, I32, IntType, VectorType
from tlx.ir.values import ConstInt, Value, const_int

_FLOAT: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
_INTEGER: Final = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "sdiv", "rem": "srem",
    "shl": "shl", "shr": "ashr", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip
_CHOICE: Final = {
    ("max", "float"): "llvm.maxnum", ("min", "float"): "llvm.minnum",
    ("max", "int"): "llvm.smax", ("min", "int"): "llvm.smin",
}  # fmt: skip
_PREDICATES: Final = {
    "equal": ("eq", "oeq"),
    "not_equal": ("ne", "une"),
    "greater_than": ("sgt", "ogt"),
    "greater_than_equal": ("sge", "oge"),
    "less_than": ("slt", "olt"),
    "less_than_equal": ("sle", "ole"),
}


def scalar_binary(e: Emitter, i: ArithBinary) -> Number:
    """`add %a, %b : type` of scalars."""
    lhs, rhs = unify_numbers(e, e.number(i.lhs), e.number(i.rhs))
    parts = rhs.parts
    if lhs.type.kind == "int" and i.op in ("div", "rem") and e.mask is not None and rhs.is_varying:
        parts = (e.b.select(e.mask, rhs.value, full_like(rhs.value, 1)),)  # inactive lanes may be poison
    result = binary(e, i.op, lhs.type, lhs.parts, parts)
    known = binary_interval(i.op, lhs.type, lhs, rhs)
    return Number(lhs.type, result, _linear(e, i.op, lhs, rhs, exact=known is not None), known)


def scalar_unary(e: Emitter, i: ArithUnary) -> Number:
    """`neg %a : type` of a scalar."""
    operand = e.number(i.operand)
    assert isinstance(i.type, ScalarType)
    return Number(i.type, unary(e, i.op, operand.type, operand.parts))


def comparison(e: Emitter, i: Comparison) -> None:
    """`%r = less_than %a, %b : bool`."""
    lhs, rhs = unify_numbers(e, e.number(i.lhs), e.number(i.rhs))
    e.bind(i.result, Number(BOOL, (_compared(e, i.op, lhs.type, lhs.parts, rhs.parts),)))


def binary(e: Emitter, op: str, type_: ScalarType, lhs: Parts, rhs: Parts) -> Parts:
    """`lhs op rhs` of one scalar type."""
    if type_.kind == "complex":
        return complex_binary(e, op, lhs, rhs)
    (a,), (b,) = lhs, rhs
    if (op, type_.kind) in _CHOICE:
        return (call(e, _CHOICE[op, type_.kind], [a, b]),)
    if op == "pow":
        return (round_to_type(e, call(e, "llvm.pow", [a, b]), type_),)
    opcode = _FLOAT[op] if type_.kind == "float" else _INTEGER[op]
    if opcode in ("sdiv", "srem"):
        b = _safe_divisor(e, a, b)
    elif opcode in ("shl", "ashr"):
        b = _shift_distance(e, b)
    return (round_to_type(e, e.b.binary(opcode, a, b), type_),)


def _safe_divisor(e: Emitter, dividend: Value, divisor: Value) -> Value:
    """A divisor that never traps: 1 instead of 0, and instead of -1 if the quotient would overflow."""
    if isinstance(divisor, ConstInt) and divisor.value not in (0, -1):
        return divisor
    is_zero = compare(e, "icmp", "eq", divisor, full_like(divisor, 0))
    is_lowest = compare(e, "icmp", "eq", dividend, full_like(divisor, -(1 << (_bits(divisor) - 1))))
    is_minus_one = compare(e, "icmp", "eq", divisor, full_like(divisor, -1))
    stops = e.b.binary("or", is_zero, e.b.binary("and", is_lowest, is_minus_one))
    return e.b.select(stops, full_like(divisor, 1), divisor)


def _shift_distance(e: Emitter, distance: Value) -> Value:
    """A shift distance, modulo the number of bits as in OpenCL C."""
    bits = _bits(distance)
    if isinstance(distance, ConstInt) and 0 <= distance.value < bits:
        return distance
    return e.b.binary("and", distance, full_like(distance, bits - 1))


def _bits(value: Value) -> int:
    """Bits of an integer, or of the elements of a vector."""
    element = value.type.element if isinstance(value.type, VectorType) else value.type
    assert isinstance(element, IntType)
    return element.bits


def unary(e: Emitter, op: str, type_: ScalarType, operand: Parts) -> Parts:
    """`op operand`."""
    if type_.kind == "complex":
        return complex_unary(e, op, operand)
    (x,) = operand
    match op, type_.kind:
        case "not", _:
            return (e.b.binary("xor", x, full_like(x, -1)),)
        case "abs", "int":
            return (call(e, "llvm.abs", [x], const_int(I1, 0)),)
        case "abs", _:
            return (call(e, "llvm.fabs", [x]),)
        case "sqrt", _:
            return (round_to_type(e, call(e, "llvm.sqrt", [x]), type_),)
        case "tanh", _:
            return (round_to_type(e, apply_function(e, "tanh", x), type_),)
        case "neg", "int":
            return (e.b.binary("sub", full_like(x, 0), x),)
        case _:
            return (negated(e, x),)


def reduce_lanes(e: Emitter, op: str, type_: ScalarType, lanes: Value) -> Value:
    """`op` of all lanes, a power of two of them: halves are combined until one lane is left."""
    assert isinstance(lanes.type, VectorType)
    count = lanes.type.count
    while count > 1:
        count //= 2
        low = e.b.shuffle(lanes, None, range(count))
        high = e.b.shuffle(lanes, None, range(count, 2 * count))
        (lanes,) = binary(e, op, type_, (low,), (high,))
    return e.b.extract_element(lanes, 0)


def _compared(e: Emitter, op: str, type_: ScalarType, lhs: Parts, rhs: Parts) -> Value:
    """`lhs op rhs` as i1."""
    integer, floating = _PREDICATES[op]
    if type_.kind in ("int", "bool"):
        return compare(e, "icmp", integer, lhs[0], rhs[0])
    found = [compare(e, "fcmp", floating, a, b) for a, b in zip(lhs, rhs, strict=True)]
    if len(found) == 1:
        return found[0]
    return e.b.binary("and" if op == "equal" else "or", found[0], found[1])


def _linear(e: Emitter, op: str, lhs: Number, rhs: Number, *, exact: bool) -> Linear | None:
    """The linear form of a sum, difference or multiple of linear numbers; `exact` if no lane wraps around."""
    if lhs.linear is None or rhs.linear is None:
        return None
    one, two = lhs.linear, rhs.linear
    exact = exact and one.exact and two.exact
    if op in ("add", "sub"):
        step = one.step + two.step if op == "add" else one.step - two.step
        base = e.b.binary(op, one.base, two.base)
        return Linear(base, step, exact or fits_without_wrap(e, base, step))
    if op == "mul":
        for factor, other in ((one, two), (two, one)):
            if factor.step == 0 and isinstance(factor.base, ConstInt):
                base, step = e.b.mul(other.base, factor.base), other.step * factor.base.value
                return Linear(base, step, exact or fits_without_wrap(e, base, step))
    return None


def complex_binary(e: Emitter, op: str, lhs: Parts, rhs: Parts) -> Parts:
    """`lhs op rhs`."""
    match op:
        case "mul":
            return _multiply(e, lhs, rhs)
        case "div":
            return _divide(e, lhs, rhs)
        case _:
            return tuple(e.b.binary(f"f{op}", a, b) for a, b in zip(lhs, rhs, strict=True))


def complex_unary(e: Emitter, op: str, operand: Parts) -> Parts:
    """`op operand`; one part where the result is real."""
    real, imaginary = operand
    match op:
        case "re":
            return (real,)
        case "im":
            return (imaginary,)
        case "conj":
            return real, negated(e, imaginary)
        case "neg":
            return negated(e, real), negated(e, imaginary)
        case _:
            return (_hypot(e, real, imaginary),)


def _multiply(e: Emitter, lhs: Parts, rhs: Parts) -> Parts:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    (a, b), (c, d) = lhs, rhs
    f = e.b.binary
    return f("fsub", f("fmul", a, c), f("fmul", b, d)), f("fadd", f("fmul", a, d), f("fmul", b, c))


def _divide(e: Emitter, lhs: Parts, rhs: Parts) -> Parts:
    """Smith's method, on numbers scaled by powers of two so that sums do not overflow and divisors keep all bits.

    |c| >= |d|:  r = d / c,  t = c + d r,  ((a + b r) / t, (b - a r) / t);   else the same with the roles swapped.
    Division by 0 + 0i divides each part by 0.
    """
    f = e.b.binary
    above, below = _scale(e, lhs), _scale(e, rhs)
    (a, b), (c, d) = (f("fmul", x, above) for x in lhs), (f("fmul", x, below) for x in rhs)
    wide = compare(e, "fcmp", "oge", call(e, "llvm.fabs", [c]), call(e, "llvm.fabs", [d]))
    large, small = e.b.select(wide, c, d), e.b.select(wide, d, c)
    first, second = e.b.select(wide, a, b), e.b.select(wide, b, a)
    is_zero = compare(e, "fcmp", "oeq", large, full_like(large, 0.0))
    ratio = e.b.select(is_zero, small, f("fdiv", small, large))
    scale = f("fadd", large, f("fmul", small, ratio))
    back = f("fdiv", below, above)
    real = f("fmul", f("fdiv", f("fadd", first, f("fmul", second, ratio)), scale), back)
    difference = f("fmul", f("fdiv", f("fsub", second, f("fmul", first, ratio)), scale), back)
    return real, e.b.select(wide, difference, negated(e, difference))


def _scale(e: Emitter, parts: Parts) -> Value:
    """A power of two that scales very large and very small numbers into the middle of their range."""
    largest = call(e, "llvm.maxnum", [call(e, "llvm.fabs", [part]) for part in parts])
    element = largest.type.element if isinstance(largest.type, VectorType) else largest.type
    lowest, digits = (-1022, 53) if element == DOUBLE else (-126, 24)
    is_large = compare(e, "fcmp", "ogt", largest, full_like(largest, 2.0 ** (-lowest - 1)))
    is_small = compare(e, "fcmp", "olt", largest, full_like(largest, 2.0 ** (lowest + digits)))
    raised = e.b.select(is_small, full_like(largest, 2.0 ** (digits + 2)), full_like(largest, 1.0))
    return e.b.select(is_large, full_like(largest, 0.25), raised)


def _hypot(e: Emitter, x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2) without overflow: m sqrt(1 + (n/m)^2) for m >= n; infinite if a part is, else NaN if one is."""
    a, b = call(e, "llvm.fabs", [x]), call(e, "llvm.fabs", [y])
    swap = compare(e, "fcmp", "olt", a, b)
    large, small = e.b.select(swap, b, a), e.b.select(swap, a, b)
    zero, one, infinity = full_like(a, 0.0), full_like(a, 1.0), full_like(a, float("inf"))
    ratio = e.b.binary("fdiv", small, large)
    root = call(e, "llvm.sqrt", [e.b.binary("fadd", one, e.b.binary("fmul", ratio, ratio))])
    length = e.b.binary("fmul", large, root)
    length = e.b.select(compare(e, "fcmp", "oeq", large, zero), e.b.binary("fadd", large, small), length)
    infinite = e.b.binary("or", compare(e, "fcmp", "oeq", a, infinity), compare(e, "fcmp", "oeq", b, infinity))
    return e.b.select(infinite, infinity, length)


def math_rule(e: Emitter, i: Math) -> None:
    """`%r = exp %a : type`."""
    operand = e.number(i.operand)
    function = i.op.removeprefix("native_")
    if operand.type.kind == "complex":
        parts = _complex(e, function, operand.parts)
    else:
        parts = (round_to_type(e, apply_function(e, function, operand.value), operand.type),)
    e.bind(i.result, Number(operand.type, parts))


def apply_function(e: Emitter, function: str, value: Value) -> Value:
    """A function of a float or double, or of each element of a vector."""
    if not isinstance(value.type, VectorType):
        vector = VectorType(1, value.type)
        return e.b.extract_element(apply_function(e, function, e.b.insert_element(undefined(vector), value, 0)), 0)
    type_ = TensorType.dense(value.type.element, [value.type.count])
    return e.b.unary(function, e.b.typeinfo(value, type_))


def _complex(e: Emitter, function: str, operand: Parts) -> Parts:
    real, imaginary = operand
    length = apply_function(e, function, real)
    angle = e.b.binary("fmul", imaginary, full_like(imaginary, math.log(2))) if function == "exp2" else imaginary
    cosine, sine = (e.b.binary("fmul", length, apply_function(e, turn, angle)) for turn in ("cos", "sin"))
    is_real = compare(e, "fcmp", "oeq", imaginary, full_like(imaginary, 0.0))
    return cosine, e.b.select(is_real, imaginary, sine)


def cast_number(e: Emitter, number: Number, type_: ScalarType) -> Number:
    """A number cast to a type."""
    if number.type == type_:
        return number
    known = clamped_interval(type_, interval_of(number)) if number.type.kind == type_.kind == "int" else None
    return Number(type_, convert(e, number.parts, number.type, type_), _converted_linear(e, number, type_), known)


def _converted_linear(e: Emitter, number: Number, type_: ScalarType) -> Linear | None:
    """The linear form of a cast integer; widening one that may have wrapped around has none."""
    linear = number.linear
    if linear is None or type_.kind != "int":
        return None
    base = _integer(e, linear.base, number.type, type_)
    if type_.bits <= number.type.bits:
        return Linear(base, linear.step, fits_without_wrap(e, base, linear.step))
    return Linear(base, linear.step, exact=True) if linear.exact else None


def convert(e: Emitter, parts: Parts, source: ScalarType, type_: ScalarType) -> Parts:
    """The parts of a value, converted to another type."""
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
    return round_to_type(e, value, type_)


def _integer(e: Emitter, value: Value, source: ScalarType, type_: ScalarType) -> Value:
    if source.bits == type_.bits:
        return value
    opcode = "trunc" if source.bits > type_.bits else "zext" if source.kind == "bool" else "sext"
    return e.b.cast(opcode, value, typed_like(value, register_type(type_)))


def _to_float(e: Emitter, value: Value, source: ScalarType, type_: ScalarType) -> Value:
    opcode = "uitofp" if source.kind == "bool" else "sitofp"
    if not type_.is_narrow_float or source.bits <= 16:
        found = e.b.cast(opcode, value, typed_like(value, register_type(type_)))
        return round_to_type(e, found, type_)
    exact = _sticky(e, value) if source.bits == 64 else value
    return round_to_type(e, _to_odd(e, e.b.cast(opcode, exact, typed_like(value, DOUBLE))), type_)


def _sticky(e: Emitter, value: Value) -> Value:
    """An i64 that a double represents exactly, and that rounds to the same narrow float.

    From 2^53 on, the lowest eleven bits are combined into the twelfth (a sticky bit).
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
