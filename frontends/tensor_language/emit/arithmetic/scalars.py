"""Scalars, uniform or varying, as LLVM values: constants, selection, rounding, operators, functions and casts.

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
import struct
from typing import Final

from tlx.frontends.tensor_language.emit.arithmetic.registers import (
    apply_function,
    call,
    compare,
    fcmp,
    full_like,
    full_of,
    gathered,
    negated,
    typed_like,
)
from tlx.frontends.tensor_language.emit.emitter import (
    Emitter,
    Interval,
    LinearLanes,
    Number,
    Parts,
    binary_interval,
    clamped_interval,
    interval_of,
    register_type,
)
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, ArithUnary, Comparison, Math
from tlx.frontends.tensor_language.types import BF16, BOOL, F64, INDEX, ScalarType
from tlx.ir.types import DOUBLE, FLOAT, HALF, I1, I16, I32, I64, IntType, VectorType
from tlx.ir.values import Constant, ConstInt, Value, const_float, const_int, const_ints, const_vector


def constant(type_: ScalarType, value: complex) -> Number:
    """A uniform constant, rounded to its type."""
    register = register_type(type_)
    if isinstance(register, IntType):
        return Number(type_, (const_int(register, int(value.real)),))
    parts = (value.real, value.imag) if type_.kind == "complex" else (value.real,)
    return Number(type_, tuple(const_float(register, _rounded(type_, part)) for part in parts))


def index(value: Value) -> Number:
    """An i64 as an `index`."""
    return Number(INDEX, (value,))


def splat(e: Emitter, value: Value, count: int | None = None) -> Value:
    """A scalar in every lane of a subgroup or of `count` lanes; a vector is returned as it is."""
    if isinstance(value.type, VectorType):
        return value
    count = e.lanes if count is None else count
    if isinstance(value, Constant):
        return const_vector([value] * count)
    return e.b.splat(value, count) if e.item is None else gathered(e, [value] * count)


def vary(e: Emitter, number: Number) -> Number:
    """A number as a vector with a lane for each work-item."""
    if number.is_varying:
        return number
    linear = LinearLanes(number.value, 0, exact=True) if number.type.kind == "int" else None
    return Number(number.type, tuple(splat(e, part) for part in number.parts), linear, interval_of(number))


def linear_number(e: Emitter, type_: ScalarType, linear: LinearLanes, known: Interval | None = None) -> Number:
    """A number with a linear form."""
    integer = linear.base.type
    assert isinstance(integer, IntType)
    steps = lane_steps(e, integer, linear.step)
    return Number(type_, (e.b.binary("add", splat(e, linear.base), steps),), linear, known)


def lane_steps(e: Emitter, type_: IntType, step: int) -> Value:
    """`<0, step, 2 * step, ...>`, modulo the bits of the type."""
    half = 1 << (type_.bits - 1)
    if e.item is None:
        return const_ints(type_, [(lane * step + half) % (2 * half) - half for lane in range(e.lanes)])
    lane = e.b.cast("zext" if type_.bits > I32.bits else "trunc", e.item.lane, type_)
    return splat(e, e.b.mul(lane, const_int(type_, (step + half) % (2 * half) - half)))


def unify_numbers(e: Emitter, *numbers: Number) -> tuple[Number, ...]:
    """Numbers made all uniform or all varying, as operations require."""
    if not any(number.is_varying for number in numbers):
        return numbers
    return tuple(vary(e, number) for number in numbers)


def is_int(value: Value, number: int) -> bool:
    """Whether a value is known to be an integer."""
    return isinstance(value, ConstInt) and value.value == number


def unify_values(e: Emitter, *values: Value) -> tuple[Value, ...]:
    """LLVM values made all scalars or all vectors."""
    if not any(isinstance(value.type, VectorType) for value in values):
        return values
    return tuple(splat(e, value) for value in values)


def fits_without_wrap(e: Emitter, base: Value, step: int) -> bool:
    """Whether `base + lane * step` is known to wrap around in no lane."""
    if step == 0:
        return True
    if not isinstance(base, ConstInt) or not isinstance(base.type, IntType):
        return False
    limit = 1 << (base.type.bits - 1)
    return all(-limit <= end < limit for end in (base.value, base.value + (e.launch.subgroup_size - 1) * step))


def select(e: Emitter, condition: Value, then: Number, otherwise: Number) -> Number:
    """`condition ? then : otherwise`, for an i1 or a vector of i1."""
    if isinstance(condition.type, VectorType):
        then, otherwise = vary(e, then), vary(e, otherwise)
    else:
        then, otherwise = unify_numbers(e, then, otherwise)
    pairs = zip(then.parts, otherwise.parts, strict=True)
    return Number(then.type, tuple(e.b.select(condition, a, b) for a, b in pairs))


def lane_ids(e: Emitter) -> Value:
    """`<i32 0, i32 1, ..., i32 S-1>`."""
    return lane_steps(e, I32, 1)


def round_to_type(e: Emitter, value: Value, type_: ScalarType) -> Value:
    """A register value rounded to its type (to nearest, ties to even)."""
    if not type_.is_narrow_float:
        return value
    return from_memory(e, to_memory(e, value, type_), type_)


def to_memory(e: Emitter, value: Value, type_: ScalarType) -> Value:
    """A part in its memory type; `bf16` is rounded with integer arithmetic, which every version of LLVM supports.

    bits + 0x7fff + (bit 16), shifted right by 16; a NaN keeps its upper bits and becomes quiet.
    """
    if not type_.is_narrow_float:
        return value
    if type_ != BF16:
        return e.b.cast("fptrunc", value, typed_like(value, HALF))
    bits_type = typed_like(value, I32)
    bits = e.b.cast("bitcast", value, bits_type)
    lowest = e.b.binary("and", _upper_half(e, bits), full_of(bits_type, 1))
    rounded = e.b.binary("add", e.b.binary("add", bits, full_of(bits_type, 0x7FFF)), lowest)
    is_nan = fcmp(e, "uno", value, value)
    quiet = e.b.binary("or", bits, full_of(bits_type, 0x400000))
    chosen = e.b.select(is_nan, quiet, rounded)
    return e.b.cast("trunc", _upper_half(e, chosen), typed_like(value, I16))


def from_memory(e: Emitter, value: Value, type_: ScalarType) -> Value:
    """A part from its memory type in its register type."""
    if not type_.is_narrow_float:
        return value
    if type_ != BF16:
        return e.b.cast("fpext", value, typed_like(value, FLOAT))
    bits_type = typed_like(value, I32)
    bits = e.b.cast("zext", value, bits_type)
    return e.b.cast("bitcast", e.b.binary("shl", bits, full_of(bits_type, 16)), typed_like(value, FLOAT))


def from_i64(e: Emitter, value: Value, type_: IntType) -> Value:
    """An i64 as an integer type into which it fits."""
    return const_int(type_, value.value) if isinstance(value, ConstInt) else e.b.cast("trunc", value, type_)


def to_i64(e: Emitter, number: Number) -> Value:
    """An integer as i64 (sign-extended)."""
    value = number.value
    return (
        const_int(I64, value.value) if isinstance(value, ConstInt) else e.b.cast("sext", value, typed_like(value, I64))
    )


def _upper_half(e: Emitter, bits: Value) -> Value:
    return e.b.binary("lshr", bits, full_of(bits.type, 16))


def _rounded(type_: ScalarType, number: float) -> float:
    """A Python number rounded to a type, to nearest, ties to even; too large numbers become infinite."""
    if type_.part.bits == 64:
        return number
    if type_.is_narrow_float and type_ != BF16:
        return _packed("<e", number)
    single = _packed("<f", number)
    if type_ != BF16 or not math.isfinite(single):
        return single
    bits = struct.unpack("<I", struct.pack("<f", single))[0]
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def _packed(form: str, number: float) -> float:
    try:
        return struct.unpack(form, struct.pack(form, number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


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
    results = [compare(e, "fcmp", floating, a, b) for a, b in zip(lhs, rhs, strict=True)]
    if len(results) == 1:
        return results[0]
    return e.b.binary("and" if op == "equal" else "or", results[0], results[1])


def _linear(e: Emitter, op: str, lhs: Number, rhs: Number, *, exact: bool) -> LinearLanes | None:
    """The linear form of a sum, difference or multiple of linear numbers; `exact` if no lane wraps around."""
    if lhs.linear is None or rhs.linear is None:
        return None
    one, two = lhs.linear, rhs.linear
    exact = exact and one.exact and two.exact
    if op in ("add", "sub"):
        step = one.step + two.step if op == "add" else one.step - two.step
        base = e.b.binary(op, one.base, two.base)
        return LinearLanes(base, step, exact or fits_without_wrap(e, base, step))
    if op == "mul":
        for factor, other in ((one, two), (two, one)):
            if factor.step == 0 and isinstance(factor.base, ConstInt):
                base, step = e.b.mul(other.base, factor.base), other.step * factor.base.value
                return LinearLanes(base, step, exact or fits_without_wrap(e, base, step))
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


def _converted_linear(e: Emitter, number: Number, type_: ScalarType) -> LinearLanes | None:
    """The linear form of a cast integer; widening one that may have wrapped around has none."""
    linear = number.linear
    if linear is None or type_.kind != "int":
        return None
    base = _integer(e, linear.base, number.type, type_)
    if type_.bits <= number.type.bits:
        return LinearLanes(base, linear.step, fits_without_wrap(e, base, linear.step))
    return LinearLanes(base, linear.step, exact=True) if linear.exact else None


def convert(e: Emitter, parts: Parts, source: ScalarType, type_: ScalarType) -> Parts:
    """The parts of a value, converted to another type."""
    if source == type_:
        return parts
    if type_.kind == "complex":
        converted = tuple(_real(e, part, source.part, type_.part) for part in parts)
        return converted if len(converted) == 2 else (*converted, full_like(converted[0], 0.0))
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
        converted = e.b.cast(opcode, value, typed_like(value, register_type(type_)))
        return round_to_type(e, converted, type_)
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
