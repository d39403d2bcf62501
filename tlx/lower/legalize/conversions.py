"""Conversions of registers between element types, correct rounding, and arithmetic on bfloat.

Conversions have forms that every LLVM from 14 on selects good code for.

Rounding to integers, rounding to odd, and fused multiply-adds are for machines without the instruction. They are exact
for all inputs: signed zeros, infinities, NaN, and numbers so large that they are integers.

An operation on bfloat is computed on two registers of float, one of the even and one of the odd elements:

    | e0 o0 | e1 o1 | ...     <32 x bfloat> as words of 32 bits

    even = word << 16                 odd = word & 0xFFFF0000              a bfloat is the upper half of a float
    word = even >> 16 | odd & 0xFFFF0000

No element changes lane, which would use the only shuffle port of many machines, and it takes half as many instructions
as extending and joining halves of a register.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I16, I32, I64, IntType, Type, VectorType, bits_of
from tlx.ir.values import Value, const_float, const_ints, const_vector, zero
from tlx.lower.legalize.registers import emit_interleaved, opaque_register, splat_like
from tlx.lower.operations import ElementwiseOp, bfloat_as_float, round_to_bfloat
from tlx.target.instructions.vectors import NarrowFloats, VectorInstructions
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
        return float_to_narrow(b, target.narrow_floats, wide, to) if to in _NARROW else _cast(b, opcode, wide, to)
    if to not in _NARROW:
        return _cast(b, opcode, register, to)
    if isinstance(source, IntType):
        return float_to_narrow(b, target.narrow_floats, _integer_to_float(b, opcode, register, source, to), to)
    register = float_rounded_to_odd(b, register) if source == DOUBLE else register
    return float_to_narrow(b, target.narrow_floats, register, to)


def narrow_to_float(b: Builder, target: Target, register: Value, source: Type) -> Value:
    """A register of bfloat or half as float."""
    count = _count(register)
    if source == BFLOAT and target.grid is not None and count % 2 == 0:  # an instruction for each element
        order = [half * count // 2 + k for k in range(count // 2) for half in range(2)]
        return b.shuffle(*even_and_odd(b, register), order)
    if source == BFLOAT:
        return bfloat_as_float(b, register)
    if not target.narrow_floats.converts_half:
        return _from_half(b, register, count)
    if target.narrow_floats.half_conversions is not None and target.narrow_floats.half_conversions.widen is not None:
        return target.narrow_floats.half_conversions.widen(b, register)
    return b.cast("fpext", b.cast("bitcast", register, VectorType(count, HALF)), VectorType(count, FLOAT))


def float_to_narrow(b: Builder, narrow_floats: NarrowFloats, register: Value, to: Type) -> Value:
    """A register of float as bfloat or half, rounded to nearest even."""
    count = _count(register)
    if to == BFLOAT and narrow_floats.converts_bfloat:
        return b.cast("bitcast", b.cast("fptrunc", register, VectorType(count, BFLOAT)), VectorType(count, I16))
    if to == BFLOAT:
        return round_to_bfloat(b, register)
    if not narrow_floats.converts_half:
        return _to_half(b, register, count)
    if narrow_floats.half_conversions is not None and narrow_floats.half_conversions.narrow is not None:
        return narrow_floats.half_conversions.narrow(b, register)
    return b.cast("bitcast", b.cast("fptrunc", register, VectorType(count, HALF)), VectorType(count, I16))


def halves_of_pair(b: Builder, first: Value, second: Value, target: Target) -> Value:
    """Two registers of float, rounded to one of half."""
    pair = b.shuffle(first, second, range(_count(first) + _count(second)))
    return float_to_narrow(b, target.narrow_floats, pair, HALF)


def bfloats_with_subnormals(round_pair: Callable[[Builder, Value, Value], Value], b: Builder, *pair: Value) -> Value:
    """Two registers of float, rounded to bfloat by an instruction that flushes subnormal numbers; they are kept.

    A number d below the normal ones, zero included, becomes 2^-126 + d, in which the last place of a bfloat has the
    same weight; the 2^-126 are subtracted from the bits of the result.
    """
    count = _count(pair[0])
    least = _ints(count, 0x0080 << 16)
    normal: list[Value] = []
    masks: list[Value] = []
    for register in pair:
        bits = b.cast("bitcast", register, VectorType(count, I32))
        exponents = b.binary("and", bits, _ints(count, 0x7F80 << 16))
        masks.append(b.icmp("eq", exponents, _ints(count, 0)))
        raised = b.select(masks[-1], b.binary("or", bits, least), bits)
        normal.append(b.cast("bitcast", raised, register.type))
    bits = round_pair(b, *normal)
    is_raised = b.shuffle(masks[0], masks[1], range(2 * count))
    halves = const_ints(I16, [0x0080] * (2 * count)), const_ints(I16, [0] * (2 * count))
    return b.binary("sub", bits, b.select(is_raised, *halves))


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
    """Integers of 64 bits; of those beyond 2^53, the last 12 bits become one sticky bit."""
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


def _from_half(b: Builder, value: Value, count: int) -> Value:
    """Shift exponent and mantissa to their place in a float, and adjust the exponent.

    Subnormal numbers get the exponent of the smallest normal one, which is subtracted. No step computes with subnormal
    floats, which AltiVec flushes to zero.
    """
    bits = b.cast("zext", value, VectorType(count, I32))
    rest = b.binary("and", bits, _ints(count, 0x7FFF))
    sign = b.binary("shl", b.binary("xor", bits, rest), _ints(count, 16))
    place = b.binary("shl", rest, _ints(count, 13))
    normal = b.binary("add", place, _ints(count, (127 - 15) << 23))
    special = b.binary("add", place, _ints(count, 2 * (127 - 15) << 23))
    raised = b.cast("bitcast", b.binary("add", place, _ints(count, (128 - 15) << 23)), VectorType(count, FLOAT))
    least = const_vector([const_float(FLOAT, 2.0**-14)] * count)
    subnormal = b.cast("bitcast", b.binary("fsub", raised, least), VectorType(count, I32))
    magnitude = b.select(b.icmp("ugt", rest, _ints(count, 0x7BFF)), special, normal)
    magnitude = b.select(b.icmp("ult", rest, _ints(count, 0x400)), subnormal, magnitude)
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


ROUNDINGS: Final = ("floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round")


SATURATING: Final = {"llvm.fptosi.sat": "fptosi", "llvm.fptoui.sat": "fptoui"}


def saturated(b: Builder, callee: str, x: Value, to: IntType) -> Value:
    """Floats or doubles converted to integers as `llvm.fptosi.sat` does, by comparisons; no conversion overflows.

    %r = call @llvm.fptosi.sat(%x)    ->    %in = fcmp oge %x, -2^31, and fcmp olt %x, 2^31
                                            %n = fptosi (select %in, %x, 0)          NaN is 0
                                            %r = select (fcmp oge %x, 2^31), 2^31 - 1,
                                                 select (fcmp olt %x, -2^31), -2^31, %n

    Shorter integers are bounded as floats, then converted to i32 and truncated:

    %r = call <n x i8> @llvm.fptoui.sat(%x)   ->   %n = select (fcmp ord %x, %x), min(max(%x, 0), 255), 0
                                                   %r = trunc (fptosi %n to <n x i32>) to <n x i8>
    """
    assert isinstance(x.type, VectorType)
    is_signed, count = callee == "llvm.fptosi.sat", x.type.count
    low, end = (-(1 << to.bits - 1), 1 << to.bits - 1) if is_signed else (0, 1 << to.bits)
    if to.bits < I32.bits:
        bounded = _at_most(b, _at_least(b, x, float(low)), float(end - 1))
        number = b.select(compare(b, "ord", x, x), bounded, zero(x.type))
        return b.cast("trunc", b.cast("fptosi", number, VectorType(count, I32)), VectorType(count, to))
    bounds = splat_like(x, float(low)), splat_like(x, float(end))
    is_below, is_above = compare(b, "olt", x, bounds[0]), compare(b, "oge", x, bounds[1])
    is_inside = b.binary("and", compare(b, "oge", x, bounds[0]), compare(b, "olt", x, bounds[1]))
    number = b.cast(SATURATING[callee], b.select(is_inside, x, zero(x.type)), VectorType(count, to))
    number = b.select(is_below, const_ints(to, [low] * count), number)
    return b.select(is_above, const_ints(to, [end - 1 if is_signed else -1] * count), number)


def _at_least(b: Builder, x: Value, least: float) -> Value:
    bound = splat_like(x, least)
    return b.select(compare(b, "ogt", x, bound), x, bound)


def _at_most(b: Builder, x: Value, most: float) -> Value:
    bound = splat_like(x, most)
    return b.select(compare(b, "olt", x, bound), x, bound)


def rounded_to_integer(b: Builder, name: str, x: Value) -> Value:
    """A register rounded to integers as `llvm.<name>` does.

    |x| + 2^23 - 2^23 is |x| rounded to the nearest integer (2^52 for double); the other roundings correct that.
    """
    magnitude = _magnitude(b, x)
    nearest = _nearest(b, magnitude)
    if name in ("floor", "ceil"):
        result = _toward(b, name, x, _signed(b, nearest, x))
    elif name == "trunc":
        result = _down(b, nearest, magnitude)
    elif name == "round":
        below = _down(b, nearest, magnitude)
        half = compare(b, "oge", b.binary("fsub", magnitude, below), splat_like(x, 0.5))
        result = b.binary("fadd", below, b.select(half, splat_like(x, 1.0), splat_like(x, 0.0)))
    else:
        result = nearest
    is_small = compare(b, "olt", magnitude, splat_like(x, _integral_from(x)))
    # The sign comes last: LLVM 19 to 22 select a wrong vpternlog for `select(c, signed(result, x), x)`.
    return _signed(b, b.select(is_small, result, magnitude), x)


def _nearest(b: Builder, magnitude: Value) -> Value:
    shift = splat_like(magnitude, _integral_from(magnitude))
    return b.binary("fsub", b.binary("fadd", magnitude, shift), shift)


def _down(b: Builder, nearest: Value, magnitude: Value) -> Value:
    """The nearest integer, or the one below if the nearest is larger than the number."""
    above = compare(b, "ogt", nearest, magnitude)
    return b.binary("fsub", nearest, b.select(above, splat_like(magnitude, 1.0), splat_like(magnitude, 0.0)))


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
    magnitude, back_magnitude = _magnitude(b, x), _magnitude(b, back)
    narrow = VectorType(type_.count, I32)
    outward = b.cast("sext", compare(b, "ogt", back_magnitude, magnitude), narrow)
    inexact = b.cast("zext", compare(b, "one", back_magnitude, magnitude), narrow)
    odd = b.binary("or", b.binary("add", bits, outward), inexact)
    return b.cast("bitcast", odd, near.type)


def compare(b: Builder, predicate: str, x: Value, y: Value) -> Value:
    """`fcmp`."""
    assert isinstance(x.type, VectorType)
    return ElementwiseOp("fcmp", (), predicate).emit(b, VectorType(x.type.count, IntType(1)), [x, y], "cmp")


def as_bits(b: Builder, x: Value) -> Value:
    """A register of floats as integers of their bits."""
    assert isinstance(x.type, VectorType)
    return b.cast("bitcast", x, VectorType(x.type.count, IntType(bits_of(x.type.element))))


def _magnitude(b: Builder, x: Value) -> Value:
    return _by_bits(b, x, lambda bits: b.binary("and", bits, splat_like(bits, _signed_max(bits))))


def _signed(b: Builder, magnitude: Value, sign: Value) -> Value:
    """`magnitude` with the sign of `sign`."""
    bits = as_bits(b, sign)
    mask = b.binary("and", bits, splat_like(bits, -_signed_max(bits) - 1))
    return _by_bits(b, magnitude, lambda s: b.binary("or", b.binary("and", s, splat_like(s, _signed_max(s))), mask))


def _by_bits(b: Builder, x: Value, change: Callable[[Value], Value]) -> Value:
    return b.cast("bitcast", change(as_bits(b, x)), x.type)


def _signed_max(bits: Value) -> int:
    """The largest signed integer: all bits but the sign."""
    return (1 << (_int_element(bits).bits - 1)) - 1


def _int_element(bits: Value) -> IntType:
    assert isinstance(bits.type, VectorType)
    assert isinstance(bits.type.element, IntType)
    return bits.type.element


def _integral_from(x: Value) -> float:
    """The power of two from which on every number is an integer."""
    return 2.0**52 if _element(x) == DOUBLE else 2.0**23


def _element(x: Value) -> Type:
    assert isinstance(x.type, VectorType)
    return x.type.element


_UPPER: Final = -0x10000
_HALF_ULP: Final = 0x8000
_LAST_BIT: Final = 0x10000


def _compares_to_masks(instructions: VectorInstructions) -> bool:
    """Whether comparisons yield mask registers with a bit for each element, as AVX-512's do."""
    return 16 in instructions.masked_bits


def works_on_float_pairs(vector_bytes: int, element: Type, sources: Sequence[Type], register: Value) -> bool:
    """Whether operands and result are all bfloat, and the register is too wide for one register of floats."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    is_large = type_.count % 2 == 0 and type_.count * 32 > vector_bytes * 8
    return is_large and element == BFLOAT and all(s == BFLOAT for s in sources)


class BfloatRounding(Enum):
    """How floats become bfloats.

    Attributes:
        TRUNCATE: The lower half is dropped, which changes nothing where the number is a bfloat.
        HALF_UP: By half an ulp that is added: right where no number is in the middle between two bfloats.
        HALF_TO_EVEN: As `fptrunc` rounds.
    """

    TRUNCATE = auto()
    HALF_UP = auto()
    HALF_TO_EVEN = auto()


def in_float_pairs(
    b: Builder,
    target: Target,
    registers: Sequence[Value],
    compute: Callable[[Sequence[Value]], Value],
    rounding: BfloatRounding = BfloatRounding.HALF_TO_EVEN,
) -> Value:
    """Emit an operation on registers of bfloat, computed in float on even and odd elements.

    Args:
        b: The builder.
        target: The machine.
        registers: The operands.
        compute: Emits the operation on registers of half as many floats.
        rounding: How the results are rounded.
    """
    operands = [even_and_odd(b, register) for register in registers]
    halves = [[pair[i] for pair in operands] for i in range(2)]
    even, odd = emit_interleaved(b, [partial(compute, half) for half in halves])
    return joined_floats(b, target, even, odd, rounding)


def joined_floats(b: Builder, target: Target, even: Value, odd: Value, rounding: BfloatRounding) -> Value:
    """A register of bfloat from its even and its odd elements as float."""
    even, odd = _words(b, even), _words(b, odd)
    if rounding is not BfloatRounding.TRUNCATE and target.full_nan:
        even, odd = (_with_short_nan(b, word) for word in (even, odd))
    if rounding is BfloatRounding.HALF_UP:
        even, odd = (b.binary("add", word, splat_like(word, _HALF_ULP)) for word in (even, odd))
    if rounding is BfloatRounding.HALF_TO_EVEN:
        even, upper = _rounded_words(b, target.instructions, even), _rounded_upper(b, target, odd)
    else:
        upper = b.binary("and", odd, splat_like(odd, _UPPER))
    lower = b.binary("lshr", even, splat_like(even, 16))
    if rounding is BfloatRounding.HALF_UP:
        lower = opaque_register(b, lower, target)  # LLVM would make a shuffle of both: see `_rounded_upper`
    return b.cast("bitcast", b.binary("or", upper, lower), VectorType(2 * _count(upper), I16))


def _with_short_nan(b: Builder, word: Value) -> Value:
    """The bits of floats, the lower half of NaN cleared: rounding would carry from it into the sign."""
    is_nan = b.icmp("ugt", b.binary("and", word, splat_like(word, 0x7FFFFFFF)), splat_like(word, 0x7F800000))
    return b.select(is_nan, b.binary("and", word, splat_like(word, _UPPER)), word)


def even_and_odd(b: Builder, register: Value) -> tuple[Value, Value]:
    """The even elements as float, and the odd ones."""
    words = _pairs(b, register)
    return _floats(b, b.binary("shl", words, splat_like(words, 16))), odd_elements(b, register)


def odd_elements(b: Builder, register: Value) -> Value:
    """The odd elements as float."""
    words = _pairs(b, register)
    return _floats(b, b.binary("and", words, splat_like(words, _UPPER)))


def _pairs(b: Builder, register: Value) -> Value:
    assert isinstance(register.type, VectorType)
    return b.cast("bitcast", register, VectorType(register.type.count // 2, I32))


def _floats(b: Builder, words: Value) -> Value:
    assert isinstance(words.type, VectorType)
    return b.cast("bitcast", words, VectorType(words.type.count, FLOAT))


def _rounded_words(b: Builder, instructions: VectorInstructions, word: Value) -> Value:
    """The bits of floats with the upper half rounded to nearest even; the lower half is undefined.

    NaN stays NaN if its lower half is zero, as that of bfloat operands on most machines. Half an ulp is added; if the
    lower half is zero then, it was a tie, and the last bit is cleared. A machine without masks adds slightly less to
    even numbers.
    """
    if _compares_to_masks(instructions):
        up, is_tie = _plus_half_ulp(b, word)
        return b.select(is_tie, b.binary("and", up, splat_like(up, ~_LAST_BIT)), up)
    odd = b.binary("and", b.binary("lshr", word, splat_like(word, 16)), splat_like(word, 1))
    return b.binary("add", word, b.binary("add", odd, splat_like(word, _HALF_ULP - 1)))


def _rounded_upper(b: Builder, target: Target, word: Value) -> Value:
    """The bits of floats with the upper half rounded to nearest even, and a lower half of zeros.

    One mask clears both the lower half and, in a tie, the last bit, so that LLVM does not turn it into a shuffle. A
    shuffle of 16-bit elements of two sources takes three uops on Intel's machines, a shift and VPTERNLOG two.
    """
    if _compares_to_masks(target.instructions):
        up, is_tie = _plus_half_ulp(b, word)
        return b.binary("and", up, b.select(is_tie, splat_like(up, _UPPER & ~_LAST_BIT), splat_like(up, _UPPER)))
    word = _rounded_words(b, target.instructions, word)
    return b.binary("and", word, splat_like(word, _UPPER))


def _plus_half_ulp(b: Builder, word: Value) -> tuple[Value, Value]:
    """Bits plus half an ulp of the upper half, and whether the lower half is zero then."""
    up = b.binary("add", word, splat_like(word, _HALF_ULP))
    return up, b.icmp("eq", b.binary("and", up, splat_like(up, ~_UPPER)), splat_like(up, 0))


def _words(b: Builder, x: Value) -> Value:
    assert isinstance(x.type, VectorType)
    return b.cast("bitcast", x, VectorType(x.type.count, I32))
