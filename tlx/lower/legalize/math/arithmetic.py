"""The arithmetic in which the functions are written: operations on a register, polynomials, parts of numbers.

A Python number stands for its splat: `lanes.add(x, 1.0)` is

    %t = fadd <8 x float> %x, <float 0x3FF0000000000000, ...>

`multiply_add` is `llvm.fmuladd`: one rounding if the machine fuses, two if it does not. All functions are correct with
both: products that have to be exact have factors with few bits.

Polynomials have constant coefficients, lowest power first. Parts of numbers need no instructions that only some
machines have. A slow path that few numbers need is a branch:

      %any = icmp ne i8 (bitcast %rare), 0
      br i1 %any, label %rare.do, label %rare.end
    rare.do:                                        ; all lanes, then
      %chosen = select %rare, %slow, %fast
      br label %rare.end
    rare.end:
      %r = phi [ %fast, %before ], [ %chosen, %rare.do ]

The builder is in another block afterwards. Phis that name its former block are updated if that block has its terminator
already; whoever adds the terminator later has to use the new `b.block`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.instructions import Block
from tlx.ir.rewrite import split_block
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, I1, I16, I32, I64, FloatType, IntType, Type, VectorType
from tlx.ir.values import Value, const_float, const_ints, const_vector
from tlx.lower.operations import FULL_ACCURACY, Accuracy
from tlx.target.instructions.functions import FloatEstimates, FloatInstructions
from tlx.target.target import Target

Operand = Value | float
_FRACTION: Final = {BFLOAT: 7, FLOAT: 23, DOUBLE: 52}
_INTEGER: Final = {BFLOAT: I16, FLOAT: I32, DOUBLE: I64}


@dataclass(frozen=True, slots=True)
class LaneArithmetic:
    """Arithmetic on `<count x element>`.

    Attributes:
        b: The builder.
        count: Lanes of a register.
        element: float or double; bfloat for operations on bits.
        float_instructions: The target's instructions for registers of this size.
        accuracy: How accurate the results must be.
        big_endian: Whether the upper word of a double is the first of two.
        estimates: The target's instructions that estimate functions of floats, if it has any.
        constraint: The constraint of inline assembly for a register; empty if there is none.
        has_fma: Whether the target has a fused multiply-add.
    """

    b: Builder
    count: int
    element: FloatType
    float_instructions: FloatInstructions | None = None
    accuracy: Accuracy = FULL_ACCURACY
    big_endian: bool = False
    estimates: FloatEstimates | None = None
    constraint: str = ""
    has_fma: bool = False

    # The format ------------------------------------------------------------------------------------------------

    @property
    def single(self) -> bool:
        """Whether lanes are floats, not doubles."""
        return self.element == FLOAT

    @property
    def fraction(self) -> int:
        """Bits of the stored fraction."""
        return _FRACTION[self.element]

    @property
    def bias(self) -> int:
        """The exponent field of 1.0."""
        return 1023 if self.element == DOUBLE else 127

    @property
    def sign_bit(self) -> int:
        """The bit that is the sign."""
        return 1 << (self.integer.bits - 1)

    @property
    def integer(self) -> IntType:
        """The integer type as wide as a lane."""
        return _INTEGER[self.element]

    @property
    def floats(self) -> VectorType:
        """The register's type."""
        return VectorType(self.count, self.element)

    @property
    def words(self) -> VectorType:
        """The type of the register's bits."""
        return VectorType(self.count, self.integer)

    # Constants and bits ----------------------------------------------------------------------------------------

    def number(self, number: Operand) -> Value:
        """A register with `number` in every lane."""
        if isinstance(number, Value):
            return number
        return const_vector([const_float(self.element, number)] * self.count)

    def word(self, number: int | Value) -> Value:
        """A register with an integer in every lane."""
        if isinstance(number, Value):
            return number
        return const_ints(self.integer, [_signed(number, self.integer.bits)] * self.count)

    def bits(self, x: Value) -> Value:
        """The lanes' bits as integers."""
        return self.b.cast("bitcast", x, self.words)

    def from_bits(self, word: Value) -> Value:
        """Integers as the floats with these bits."""
        return self.b.cast("bitcast", word, self.floats)

    def integer_op(self, opcode: str, lhs: Value, rhs: int | Value) -> Value:
        """An integer instruction."""
        return self.b.binary(opcode, lhs, self.word(rhs))

    # Floating point --------------------------------------------------------------------------------------------

    def add(self, lhs: Operand, rhs: Operand) -> Value:
        """Sum."""
        return self.b.binary("fadd", self.number(lhs), self.number(rhs))

    def sub(self, lhs: Operand, rhs: Operand) -> Value:
        """Difference."""
        return self.b.binary("fsub", self.number(lhs), self.number(rhs))

    def mul(self, lhs: Operand, rhs: Operand) -> Value:
        """Product."""
        return self.b.binary("fmul", self.number(lhs), self.number(rhs))

    def div(self, lhs: Operand, rhs: Operand) -> Value:
        """Quotient."""
        return self.b.binary("fdiv", self.number(lhs), self.number(rhs))

    def ratio(self, lhs: Operand, rhs: Value) -> Value:
        """A quotient to about an ulp, for a denominator that is neither tiny nor huge.

        With y near 1 / d to 2^-14, q = n y is corrected by its remainder: q + (n - q d) y is off by 2^-28 of itself.
        """
        if self.float_instructions is None or not self.single:
            return self.div(lhs, rhs)
        inverse = self.float_instructions.reciprocal(self.b, rhs)
        quotient = self.mul(lhs, inverse)
        remainder = self.multiply_add(self.negative(quotient), rhs, lhs)
        return self.multiply_add(remainder, inverse, quotient)

    def negative(self, x: Value) -> Value:
        """Minus x."""
        return self.b.value("fneg", self.floats, [x], f"fneg {x.typed}")

    def multiply_add(self, a: Operand, b: Operand, c: Operand) -> Value:
        """The sum a b + c, rounded once or twice."""
        operands = [self.number(a), self.number(b), self.number(c)]
        return self.b.call_intrinsic("llvm.fmuladd", [self.floats], self.floats, operands)

    def magnitude(self, x: Value) -> Value:
        """The absolute value |x|."""
        return self.b.call_intrinsic("llvm.fabs", [self.floats], self.floats, [x])

    def negative_magnitude(self, x: Value) -> Value:
        """The negative absolute value -|x|."""
        return self.from_bits(self.integer_op("or", self.bits(x), self.sign_bit))

    def with_sign_of(self, magnitude: Value, x: Value) -> Value:
        """A register of magnitudes with the signs of `x`."""
        sign = self.integer_op("and", self.bits(x), self.sign_bit)
        return self.from_bits(self.integer_op("or", self.bits(magnitude), sign))

    # Selection -------------------------------------------------------------------------------------------------

    def compare(self, predicate: str, lhs: Value, rhs: Operand) -> Value:
        """`fcmp`: o... is false and u... is true where a lane is NaN."""
        other = self.number(rhs)
        body = f"fcmp {predicate} {lhs.typed}, {other}"
        instruction = self.b.emit("fcmp", VectorType(self.count, I1), [lhs, other], body)
        instruction.predicate = predicate
        return instruction.value

    def choose(self, condition: Value, first: Operand, second: Operand) -> Value:
        """`select` of floats."""
        return self.b.select(condition, self.number(first), self.number(second))

    def at_most(self, x: Value, bound: float) -> Value:
        """min(x, bound); NaN stays."""
        return self.choose(self.compare("ogt", x, bound), bound, x)

    def at_least(self, x: Value, bound: float) -> Value:
        """max(x, bound); NaN stays."""
        return self.choose(self.compare("olt", x, bound), bound, x)


def lanes_of(b: Builder, target: Target, x: Value, element: Type, accuracy: Accuracy = FULL_ACCURACY) -> LaneArithmetic:
    """Arithmetic on registers like `x` on a target.

    Raises:
        TypeError: The register is not a vector of floats or doubles.
    """
    type_ = x.type
    if not isinstance(element, FloatType) or element not in (FLOAT, DOUBLE) or not isinstance(type_, VectorType):
        message = f"mathematical functions take vectors of float or double, not {type_} of {element}"
        raise TypeError(message)
    is_whole = type_.count * element.bits == target.vector_bytes * 8
    instructions = target.instructions.functions if is_whole else None
    constraint = target.instructions.opaque_constraint if is_whole else ""
    return LaneArithmetic(
        b,
        type_.count,
        element,
        instructions,
        accuracy,
        target.big_endian,
        target.instructions.estimates,
        constraint,
        target.instructions.has_fma,
    )


def _signed(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def hex_floats(text: str) -> tuple[float, ...]:
    """Numbers in C's hexadecimal spelling, which is exact."""
    return tuple(map(float.fromhex, text.split()))


def horner(lanes: LaneArithmetic, x: Value, coefficients: Sequence[float]) -> Value:
    """c0 + x (c1 + x (c2 + ...)): one multiply-add for each coefficient, in one dependency chain."""
    result: Value = lanes.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = lanes.multiply_add(result, x, coefficient)
    return result


def even_odd(lanes: LaneArithmetic, x: Value, square: Value, coefficients: Sequence[float]) -> Value:
    """(c0 + c2 x² + ...) + x (c1 + c3 x² + ...): two chains of half the length, for long polynomials."""
    even = horner(lanes, square, coefficients[::2])
    odd = horner(lanes, square, coefficients[1::2])
    return lanes.multiply_add(odd, x, even)


@dataclass(frozen=True, slots=True)
class RoundedNumber:
    """An integer for each lane of a register.

    Attributes:
        number: The integers as floats.
        word: The same integers as integers.
        low_bits: Words whose low bits are those of the integers.
    """

    number: Value
    word: Value
    low_bits: Value


def round_to_step(lanes: LaneArithmetic, x: Value, scale: float = 1.0, steps: int = 1) -> RoundedNumber:
    """The multiple of 1 / steps nearest to x * scale, which has to be below 2^21 (float) or 2^50 (double) steps.

    The ulp of x + 3/2 2^p / steps, with p the bits of the fraction, is one step: its low bits are the number of steps,
    in two's complement.
    """
    magic = 1.5 * 2.0**lanes.fraction / steps
    shifted = lanes.add(x, magic) if scale == 1.0 else lanes.multiply_add(x, scale, magic)
    field = lanes.bias + lanes.fraction - (steps.bit_length() - 1)
    magic_bits = field << lanes.fraction | 1 << (lanes.fraction - 1)
    low_bits = lanes.bits(shifted)
    return RoundedNumber(lanes.sub(shifted, magic), lanes.integer_op("sub", low_bits, magic_bits), low_bits)


def power_of_two(lanes: LaneArithmetic, exponent: Value) -> Value:
    """2^exponent, which has to be a normal number."""
    return _with_field(lanes, lanes.integer_op("add", exponent, lanes.bias))


@dataclass(frozen=True, slots=True)
class ScaledNumber:
    """A positive number x 2^n that may be below the normal ones, where arithmetic is slow on many machines.

    Attributes:
        number: x 2^n, in the subnormal lanes multiplied by the power of two that makes an ulp of subnormal numbers 1.
        is_subnormal: The lanes where x 2^n is subnormal or zero. Lanes just above may be among them.
    """

    number: Value
    is_subnormal: Value


def scale_by_power_of_two(lanes: LaneArithmetic, x: Value, exponent: RoundedNumber) -> ScaledNumber:
    """Multiply x, from 0.7 to 2, by 2^exponent, with no instruction that has a subnormal operand or result.

    `round_scaled` makes it a number. The exponent has to be above -2 bias. With an instruction for it, overflow gives
    infinity and NaN stays; otherwise the exponent is added to the bits of x, so neither may occur.
    """
    if lanes.float_instructions is not None:
        return scale_by_instruction(lanes, lanes.float_instructions, x, exponent.number)
    word = _bits_of_product(lanes, x, exponent)
    is_subnormal = lanes.b.icmp("slt", word, lanes.word(1 << lanes.fraction))
    return ScaledNumber(lanes.from_bits(raise_subnormal(lanes, word, is_subnormal)), is_subnormal)


def scale_to_normal(lanes: LaneArithmetic, x: Value, exponent: RoundedNumber) -> Value:
    """The product x 2^exponent of x, from 0.7 to 2, where it is a normal number."""
    if lanes.float_instructions is not None:
        return lanes.float_instructions.scale(lanes.b, x, exponent.number)
    return lanes.from_bits(_bits_of_product(lanes, x, exponent))


def _bits_of_product(lanes: LaneArithmetic, x: Value, exponent: RoundedNumber) -> Value:
    """The bits of x 2^exponent, if it is a normal number: the exponent is added to those of x."""
    return lanes.integer_op("add", lanes.bits(x), lanes.integer_op("shl", exponent.low_bits, lanes.fraction))


def raise_subnormal(lanes: LaneArithmetic, word: Value, is_subnormal: Value) -> Value:
    """Multiply the numbers with these bits as a `ScaledNumber` is, whose exponent field may have overflowed."""
    raise_by = lanes.b.select(is_subnormal, lanes.word(ulp_to_one(lanes) << lanes.fraction), lanes.word(0))
    return lanes.integer_op("add", word, raise_by)


def scale_by_instruction(
    lanes: LaneArithmetic, float_instructions: FloatInstructions, x: Value, exponent: Value
) -> ScaledNumber:
    """Multiply x, from 0.7 to 2, by 2^floor(exponent)."""
    is_subnormal = lanes.compare("olt", exponent, 2.0 - lanes.bias)
    raised = lanes.choose(is_subnormal, lanes.add(exponent, ulp_to_one(lanes)), exponent)
    return ScaledNumber(float_instructions.scale(lanes.b, x, raised), is_subnormal)


def ulp_to_one(lanes: LaneArithmetic) -> int:
    """The exponent of the power of two that makes an ulp of subnormal numbers 1."""
    return lanes.bias - 1 + lanes.fraction


def round_scaled(lanes: LaneArithmetic, x: ScaledNumber) -> Value:
    """The number itself: the bits of a subnormal number are the integer that its raised form rounds to.

    Without an instruction for it, 2^p is added, with p the bits of the fraction: the sum ends in the integer.
    """
    if lanes.float_instructions is not None:
        return lanes.float_instructions.round_to_bits(lanes.b, x.number, x.is_subnormal, x.number)
    magic = lanes.choose(x.is_subnormal, 2.0**lanes.fraction, 0.0)
    return lanes.from_bits(lanes.integer_op("sub", lanes.bits(lanes.add(x.number, magic)), lanes.bits(magic)))


def away_from_zero(lanes: LaneArithmetic, x: Value) -> Value:
    """Add a number to x that is too small to change e^x, so that neither x nor x² is subnormal."""
    least = lanes.number(2.0**-50 if lanes.single else 2.0**-100)
    return lanes.b.binary("fadd", x, least, flags="contract")


def _with_field(lanes: LaneArithmetic, field: Value) -> Value:
    """The power of two with that exponent field."""
    return lanes.from_bits(lanes.integer_op("shl", field, lanes.fraction))


def fast_two_sum(lanes: LaneArithmetic, large: Operand, small: Value) -> tuple[Value, Value]:
    """A sum and its rounding error, where the first operand is zero or no smaller than the second (Dekker)."""
    total = lanes.add(large, small)
    return total, lanes.add(lanes.sub(large, total), small)


def two_sum(lanes: LaneArithmetic, first: Value, second: Operand) -> tuple[Value, Value]:
    """A sum and its rounding error, whichever operand is larger (Knuth)."""
    total = lanes.add(first, second)
    part = lanes.sub(total, first)
    return total, lanes.add(lanes.sub(first, lanes.sub(total, part)), lanes.sub(second, part))


def branch_if_any_lane(
    lanes: LaneArithmetic, rare: Value, slow: Callable[[], list[Value]], fast: Callable[[], list[Value]]
) -> list[Value]:
    """The values of `slow` if any lane is rare, otherwise those of `fast`.

    Args:
        lanes: Arithmetic on registers with the lanes of `rare`.
        rare: A vector of i1.
        slow: Emits the code for all lanes; returns registers.
        fast: Emits the code if no lane is rare; returns as many registers.
    """
    b = lanes.b
    is_any, end = any_lane(lanes, rare), split_block(b.function, b.block, b.index, "rare.end")
    before = b.block
    do = b.new_block("rare.do", before)
    otherwise = b.new_block("rare.not", do)
    b.at_end(before)
    b.branch_if(is_any, do, otherwise)
    paths: list[tuple[list[Value], Block]] = []
    for block, emit in ((do, slow), (otherwise, fast)):
        b.at_end(block)
        values = emit()
        paths.append((values, b.block))
        b.branch(end)
    b.block, b.index = end, 0
    (rare_values, rare_end), (values, values_end) = paths
    return [b.phi(v.type, [(r, rare_end), (v, values_end)]) for r, v in zip(rare_values, values, strict=True)]


def replace_rare_lanes(
    lanes: LaneArithmetic, rare: Value, fast: Sequence[Value], slow: Callable[[], Sequence[Value]]
) -> list[Value]:
    """The values of `fast`, in the rare lanes those of `slow`.

    Args:
        lanes: Arithmetic on registers with the lanes of `rare`.
        rare: A vector of i1.
        fast: Registers that are already computed.
        slow: Emits the slow path; returns as many registers.
    """
    b = lanes.b
    is_any, end = any_lane(lanes, rare), split_block(b.function, b.block, b.index, "rare.end")
    before = b.block
    do = b.new_block("rare.do", before)
    b.at_end(before)
    b.branch_if(is_any, do, end)
    b.at_end(do)
    chosen = [b.select(rare, s, f) for s, f in zip(slow(), fast, strict=True)]
    b.branch(end)
    done = b.block
    b.block, b.index = end, 0
    return [b.phi(f.type, [(f, before), (c, done)]) for f, c in zip(fast, chosen, strict=True)]


def any_lane(lanes: LaneArithmetic, mask: Value) -> Value:
    """An i1, true if some lane of a vector of i1 is."""
    return lanes.b.icmp("ne", lanes.b.cast("bitcast", mask, IntType(lanes.count)), 0)
