"""Scalars, uniform or varying, as LLVM values: constants, broadcasts, selection, rounding to narrow types."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from tlx.frontends.tensor_language.emit.emitter import Emitter, Interval, Linear, Number, interval_of, register_type
from tlx.frontends.tensor_language.types import BF16, INDEX, ScalarType
from tlx.ir.types import FLOAT, HALF, I16, I32, I64, FloatType, IntType, VectorType
from tlx.ir.types import Type as LLVMType
from tlx.ir.values import Constant, ConstInt, Keyword, Value, const_float, const_int, const_ints, const_vector


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
    return const_vector([value] * count) if isinstance(value, Constant) else e.b.splat(value, count)


def vary(e: Emitter, number: Number) -> Number:
    """A number as a vector with a lane for each work-item."""
    if number.is_varying:
        return number
    linear = Linear(number.value, 0, exact=True) if number.type.kind == "int" else None
    return Number(number.type, tuple(splat(e, part) for part in number.parts), linear, interval_of(number))


def linear_number(e: Emitter, type_: ScalarType, linear: Linear, known: Interval | None = None) -> Number:
    """A number with a linear form."""
    integer = linear.base.type
    assert isinstance(integer, IntType)
    half = 1 << (integer.bits - 1)
    offsets = [(lane * linear.step + half) % (2 * half) - half for lane in range(e.lanes)]
    steps = const_ints(integer, offsets)
    return Number(type_, (e.b.binary("add", splat(e, linear.base), steps),), linear, known)


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


def typed_like(like: Value, type_: LLVMType) -> LLVMType:
    """A scalar type, or a vector of it with as many elements as `like`."""
    return VectorType(like.type.count, type_) if isinstance(like.type, VectorType) else type_


def fits_without_wrap(e: Emitter, base: Value, step: int) -> bool:
    """Whether `base + lane * step` is known to wrap around in no lane."""
    if step == 0:
        return True
    if not isinstance(base, ConstInt) or not isinstance(base.type, IntType):
        return False
    limit = 1 << (base.type.bits - 1)
    return all(-limit <= end < limit for end in (base.value, base.value + (e.lanes - 1) * step))


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
    return const_ints(I32, range(e.lanes))


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
    lowest = e.b.binary("and", _shifted(e, bits, 16), _full(bits_type, 1))
    rounded = e.b.binary("add", e.b.binary("add", bits, _full(bits_type, 0x7FFF)), lowest)
    is_nan = _fcmp(e, "uno", value, value)
    quiet = e.b.binary("or", bits, _full(bits_type, 0x400000))
    chosen = e.b.select(is_nan, quiet, rounded)
    return e.b.cast("trunc", _shifted(e, chosen, 16), typed_like(value, I16))


def from_memory(e: Emitter, value: Value, type_: ScalarType) -> Value:
    """A part from its memory type in its register type."""
    if not type_.is_narrow_float:
        return value
    if type_ != BF16:
        return e.b.cast("fpext", value, typed_like(value, FLOAT))
    bits_type = typed_like(value, I32)
    bits = e.b.cast("zext", value, bits_type)
    return e.b.cast("bitcast", e.b.binary("shl", bits, _full(bits_type, 16)), typed_like(value, FLOAT))


def compare(e: Emitter, opcode: str, predicate: str, lhs: Value, rhs: Value) -> Value:
    """`icmp` or `fcmp` of two values of one type."""
    if opcode == "icmp":
        return e.b.icmp(predicate, lhs, rhs)
    return _fcmp(e, predicate, lhs, rhs)


def call(e: Emitter, name: str, args: Sequence[Value], *more: Value) -> Value:
    """A call of an LLVM intrinsic that is overloaded on the type of its first argument and returns that type."""
    type_ = args[0].type
    return e.b.call_intrinsic(name, [type_], type_, [*args, *more])


def undefined(type_: LLVMType) -> Value:
    """An undefined value of a type."""
    return Keyword(type_, "undef")


def full_like(like: Value, number: float) -> Value:
    """A constant of the type of another value, in every lane of a vector."""
    return _full(like.type, number)


def negated(e: Emitter, x: Value) -> Value:
    """`fneg`."""
    return e.b.value("fneg", x.type, [x], f"fneg {x.typed}")


def from_i64(e: Emitter, value: Value, type_: IntType) -> Value:
    """An i64 as an integer type into which it fits."""
    return const_int(type_, value.value) if isinstance(value, ConstInt) else e.b.cast("trunc", value, type_)


def to_i64(e: Emitter, number: Number) -> Value:
    """An integer as i64 (sign-extended)."""
    value = number.value
    return (
        const_int(I64, value.value) if isinstance(value, ConstInt) else e.b.cast("sext", value, typed_like(value, I64))
    )


def _full(type_: LLVMType, number: float) -> Value:
    scalar = type_.element if isinstance(type_, VectorType) else type_
    value = const_float(scalar, number) if isinstance(scalar, FloatType) else const_int(scalar, int(number))
    return const_vector([value] * type_.count) if isinstance(type_, VectorType) else value


def _shifted(e: Emitter, bits: Value, distance: int) -> Value:
    return e.b.binary("lshr", bits, _full(bits.type, distance))


def _fcmp(e: Emitter, predicate: str, lhs: Value, rhs: Value) -> Value:
    type_ = typed_like(lhs, IntType(1))
    instruction = e.b.emit("fcmp", type_, [lhs, rhs], f"fcmp {predicate} {lhs.typed}, {rhs}")
    instruction.predicate = predicate
    return instruction.value


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
