"""Strength reduction: division by one number becomes multiplication, i32 products become multiply-adds of i16.

Division of several registers by one number, rounded as the instruction rounds, which takes 16 cycles for 512 bits on
Intel's machines. With y = 1/d, rounded, which is computed once,

    q0 = n y,    q1 = q0 - (q0 d - n) y,    q2 = q1 - (q1 d - n) y

q1 is one of the two floats next to n/d, so that its remainder is exact, and q2 is n/d rounded to nearest (Markstein,
"Computation of elementary functions on the IBM RISC System/6000 processor", 1990). That requires normal remainders, and
a positive d for the sign of zeros. So d has to be between 2^-24 and 2^24, and n zero or of magnitude between 2^-78 and
2^78; if some element is outside, all of them are divided, and none is multiplied, as subnormal remainders are slow.

On targets that have estimates, q1 is the sum of two products: with z, the float below 1/d, and x, what z lacks of 1/d.
As x is not negative, zeros keep their sign.

    q1 = n z + (n x),    q2 = q1 - (q1 d - n) y

Comparisons take twice as long as products there, so n that are tiny, but not zero, are found by a sum, in which s is 0
or 1 unless some n is tiny:

    s = min(|n| 2^78, 1),    t = the sum of s - s s,    t = 0

Where the quotients are floats that only become bfloat or half, targets that have estimates need no remainder. With the
floats l and u next to 1/d, n/d is between n l and n u, and rounding is monotonic: if both products become the same
number, the rounded quotient does, too. Otherwise, for less than one in 2^15 bfloats, n is divided:

    round(n l) = round(n u)    ->    round(n/d) = round(n l)

That holds for all operands: with NaN both are NaN, and for a subnormal d, u is infinite.

bfloat needs no remainder: n y is off by 2^-23, and no quotient of two 8-bit significands is within 2^-17 of the middle
between two others, unless that quotient is denormal. So half an ulp is added, without a case for ties. n is zero or at
least 2^-100; infinity and NaN are multiplied like numbers, as d is neither zero nor infinite.

Products of i32 vectors that were extended from at most 16 bits, since VPMULLD is slow:

    %x = sext <16 x i8> %a to <16 x i32>        pairs (x, sign of x)
    %w = sext <16 x i8> %b to <16 x i32>        pairs (w, 0) once the upper half is cleared
    %p = mul <16 x i32> %x, %w             ->   vpmaddwd %x, %w & 0xFFFF                x w + sign 0

The upper half is cleared in the factor that is broadcast. LLVM does the same only if the extensions are in the block of
the product; it merges VPMADDWD and a following sum into VPDPWSSD.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import groupby
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.rewrite import definitions, uses
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, IntType, Type, VectorType, bits_of, scalar_of
from tlx.ir.values import Keyword, Local, Value, const_ints, zero
from tlx.lower.legalize.conversions import (
    BfloatRounding,
    convert_register,
    even_and_odd,
    in_float_pairs,
    joined_floats,
    odd_elements,
    works_on_float_pairs,
)
from tlx.lower.legalize.elementwise import emit_elementwise
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, branch_if_any_lane, lanes_of
from tlx.lower.legalize.math.division import quotients, rounded_ratios
from tlx.lower.legalize.math.division_cases import quotients_by_case
from tlx.lower.legalize.math.division_operands import DivisionOperands, Extremes
from tlx.lower.legalize.math.scaled_division import DivisionCase, begin_quotients
from tlx.lower.legalize.math.subnormal_products import subnormal_products
from tlx.lower.legalize.registers import Result, splat_like
from tlx.lower.operations import Accuracy, ElementwiseOp
from tlx.target.instructions.functions import FloatEstimates
from tlx.target.instructions.vectors import VectorInstructions
from tlx.target.target import Target

_DIVISION: Final = ElementwiseOp("fdiv")
_MAX_NUMERATOR_EXPONENT: Final = 78
"""Exponent of the largest numerator, and of the reciprocal of the smallest: remainders are at least 2^-125, or 0."""
_MAX_DIVISOR_EXPONENT: Final = 24
_MIN_BFLOAT_EXPONENT: Final = 100
"""Exponent of the reciprocal of the smallest bfloat that is multiplied: no quotient is subnormal."""


def row_quotients(
    b: Builder, target: Target, element: Type, numerators: Sequence[Value], divisors: Sequence[Value]
) -> list[Value]:
    """Quotients of registers by splats, computed by products; empty where the instruction is as good."""
    if not is_quotient_by_product_better(target, element, divisors):
        return []
    rows = groupby(range(len(divisors)), lambda i: divisors[i])
    return [q for d, row in rows for q in divide_registers(b, target, element, [numerators[i] for i in row], d)]


def is_quotient_by_product_better(target: Target, element: Type, divisors: Sequence[Value]) -> bool:
    """Whether quotients by splats are faster as products."""
    if target.instructions.estimates is not None:
        return element == FLOAT and all(isinstance(d.type, VectorType) and d.type.count > 1 for d in divisors)
    if target.instructions.functions is None:
        return False
    if element == BFLOAT:
        return all(works_on_float_pairs(target.vector_bytes, element, [element], d) for d in divisors)
    return element == FLOAT and all(
        isinstance(d.type, VectorType) and _fills_register(target.vector_bytes, d.type) for d in divisors
    )


def _fills_register(vector_bytes: int, type_: VectorType) -> bool:
    return type_.count * 32 == vector_bytes * 8


def divide_registers(
    b: Builder, target: Target, element: Type, numerators: Sequence[Value], divisor: Value
) -> list[Value]:
    """Quotients of registers of float or bfloat by a splat, the last register.

    The builder is in another block afterwards.
    """
    assert isinstance(divisor.type, VectorType)
    if target.instructions.estimates is not None:
        return _divided_by_estimates(b, target, target.instructions.estimates, numerators, divisor)
    lanes = LaneArithmetic(b, divisor.type.count, FLOAT)
    bits = _RangeChecks(b, I16 if element == BFLOAT else I32, divisor.type.count)

    def inverse_and_check() -> tuple[Value, Value]:
        factor = odd_elements(b, divisor) if element == BFLOAT else divisor
        return b.binary("fdiv", splat_like(factor, 1.0), factor), bits.outside_divisor_range(divisor)

    inverse, is_far = _emit_once_for_row(b, divisor, inverse_and_check)
    divisors = [divisor] * len(numerators)

    def by_product() -> list[Value]:
        if element == BFLOAT:
            return _bfloat_quotients(b, target, numerators, inverse)
        return [_quotient(lanes, n, divisor, inverse) for n in numerators]

    return branch_if_any_lane(
        lanes,
        b.binary("or", is_far, bits.outside_numerator_range(numerators)),
        lambda: divided(b, target, _DIVISION, element, numerators, divisors),
        by_product,
    )


def _emit_once_for_row(b: Builder, splat: Value, emit: Callable[[], Result]) -> Result:
    """Emit what depends on a splat alone: where that is defined, if that is in a block before, such as a loop's head.

    LLVM's code generator leaves in the loop what a branch may skip.
    """
    name = splat.name if isinstance(splat, Local) else ""
    places = ((block, i) for block in b.function.blocks for i, at in enumerate(block.instructions) if at.result == name)
    block, index = next(places, (b.block, b.index))
    if block is b.block:
        return emit()
    following = range(index + 1, len(block.instructions))
    after_phis = next((i for i in following if block.instructions[i].opcode != "phi"), len(block.instructions))
    with b.inserting_at(block, after_phis):
        return emit()


def _quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value, inverse: Value) -> Value:
    quotient = lanes.mul(numerator, inverse)
    for _ in range(2):
        remainder = lanes.multiply_add(quotient, divisor, lanes.negative(numerator))
        quotient = lanes.multiply_add(lanes.negative(remainder), inverse, quotient)
    return quotient


def _divided_by_estimates(
    b: Builder, target: Target, estimates: FloatEstimates, numerators: Sequence[Value], divisor: Value
) -> list[Value]:
    """Quotients of registers of float by a splat; what depends on that alone is computed once for a row, by LLVM."""
    assert isinstance(divisor.type, VectorType)
    lanes = LaneArithmetic(b, divisor.type.count, FLOAT)
    inverse = lanes.div(1.0, divisor)
    one = lanes.number(1.0)
    is_above = lanes.compare("ogt", b.fma(inverse, divisor, lanes.number(-1.0)), 0.0)
    before = lanes.from_bits(lanes.integer_op("add", lanes.bits(inverse), -1))
    lower = lanes.choose(is_above, before, inverse)
    lost = lanes.mul(b.fma(lanes.negative(lower), divisor, one), inverse)
    tiny: Value | None = None
    largest: Value | None = None
    results: list[Value] = []
    for numerator in numerators:
        quotient = b.fma(numerator, lower, lanes.mul(numerator, lost))
        excess = b.fma(quotient, divisor, lanes.negative(numerator))
        results.append(b.fma(lanes.negative(excess), inverse, quotient))
        size = lanes.magnitude(numerator)
        share = estimates.saturate(b, lanes.mul(size, 2.0**_MAX_NUMERATOR_EXPONENT))
        rest = b.fma(lanes.negative(share), share, share)
        tiny = rest if tiny is None else lanes.add(tiny, rest)
        largest = size if largest is None else _larger(b, largest, size)
    assert tiny is not None
    assert largest is not None
    elements = [[b.extract_element(x, k) for k in range(divisor.type.count)] for x in (tiny, largest)]
    single = LaneArithmetic(b, 1, FLOAT)
    total, most = reduce(partial(b.binary, "fadd"), elements[0]), reduce(partial(_larger, b), elements[1])
    rare = b.binary(
        "or", _compared(single, "une", total, 0.0), _compared(single, "ugt", most, 2.0**_MAX_NUMERATOR_EXPONENT)
    )
    far = _RangeChecks(b, I32, 1).outside_divisor_range(_single(b, b.extract_element(divisor, 0)))
    divisors = [divisor] * len(numerators)
    return branch_if_any_lane(
        single,
        b.binary("or", rare, far),
        lambda: divided(b, target, _DIVISION, FLOAT, numerators, divisors),
        lambda: results,
    )


def rounded_quotients(
    b: Builder, target: Target, numerators: Sequence[Value], divisors: Sequence[Value], to: Type
) -> list[Value]:
    """Quotients of registers of float by splats, as registers of bfloat or half (i16).

    The builder is in another block afterwards.
    """
    results: list[Value] = []
    for divisor, numbers in groupby(range(len(divisors)), lambda i: divisors[i]):
        results += _rounded_quotients(b, target, [numerators[i] for i in numbers], divisor, to)
    return results


def _rounded_quotients(
    b: Builder, target: Target, numerators: Sequence[Value], divisor: Value, to: Type
) -> list[Value]:
    """The quotients by one splat; what depends on that alone is computed once for a row, by LLVM."""
    assert isinstance(divisor.type, VectorType)
    lanes, count = LaneArithmetic(b, divisor.type.count, FLOAT), divisor.type.count
    inverse = lanes.div(1.0, divisor)
    excess = b.fma(inverse, divisor, lanes.number(-1.0))  # NaN if the divisor is zero or infinite
    smaller, larger = (lanes.from_bits(lanes.integer_op("add", lanes.bits(inverse), step)) for step in (-1, 1))
    low = lanes.choose(lanes.compare("ogt", excess, 0.0), smaller, inverse)
    high = lanes.choose(lanes.compare("olt", excess, 0.0), larger, inverse)
    results: list[Value] = []
    differences: list[Value] = []
    words = VectorType(count // 2, I32)
    for numerator in numerators:
        smallest, largest = (
            convert_register(b, target, "fptrunc", lanes.mul(numerator, end), FLOAT, to) for end in (low, high)
        )
        results.append(smallest)
        differences.append(b.cast("bitcast", b.binary("xor", smallest, largest), words))
    difference = reduce(partial(b.binary, "or"), differences)
    total = reduce(partial(b.binary, "or"), [b.extract_element(difference, k) for k in range(count // 2)])
    divisors = [divisor] * len(numerators)

    def by_instruction() -> list[Value]:
        exact = divided(b, target, _DIVISION, FLOAT, numerators, divisors)
        return [convert_register(b, target, "fptrunc", quotient, FLOAT, to) for quotient in exact]

    is_rare = b.icmp("ne", _single(b, total), zero(VectorType(1, I32)))
    return branch_if_any_lane(LaneArithmetic(b, 1, FLOAT), is_rare, by_instruction, lambda: results)


def _larger(b: Builder, x: Value, y: Value) -> Value:
    return b.call_intrinsic("llvm.maximum", [x.type], x.type, [x, y])


def _single(b: Builder, number: Value) -> Value:
    return b.insert_element(Keyword(VectorType(1, number.type), "undef"), number, 0)


def _compared(lanes: LaneArithmetic, predicate: str, number: Value, other: float) -> Value:
    return lanes.compare(predicate, _single(lanes.b, number), other)


def _bfloat_quotients(b: Builder, target: Target, numerators: Sequence[Value], inverse: Value) -> list[Value]:
    def quotient(operands: Sequence[Value]) -> Value:
        return b.binary("fmul", operands[0], inverse)

    return [in_float_pairs(b, target, [n], quotient, BfloatRounding.HALF_UP) for n in numerators]


@dataclass(frozen=True, slots=True)
class _RangeChecks:
    """Range checks of numbers by their bits: an exponent of 8 bits above the fraction.

    Attributes:
        b: The builder.
        element: The integer type as wide as a number.
        count: Elements of a register.
    """

    b: Builder
    element: IntType
    count: int

    def outside_divisor_range(self, x: Value) -> Value:
        """Where a number is not between 2^-24 and 2^24."""
        return self._outside(self._words(x), self._power(-_MAX_DIVISOR_EXPONENT), self._power(_MAX_DIVISOR_EXPONENT))

    def outside_numerator_range(self, registers: Sequence[Value]) -> Value:
        """Where some number is not zero and too small or large.

        That of a float is not between 2^-78 and 2^78. A bfloat has to be at least 2^-100. Twice the magnitude's bits,
        less one, are the greatest integer for zero, so that one comparison of the least is enough.
        """
        sizes = [self.b.binary("shl", self._words(x), self._splat(1)) for x in registers]
        if self.element == I16:
            distances = [self.b.binary("add", size, self._splat(-1)) for size in sizes]
            least = reduce(self._least, distances)
            return self.b.icmp("ult", least, self._splat(2 * self._power(-_MIN_BFLOAT_EXPONENT) - 1))
        low, high = (2 * self._power(exponent) for exponent in (-_MAX_NUMERATOR_EXPONENT, _MAX_NUMERATOR_EXPONENT))
        far = [
            self.b.binary("and", self._outside(size, low, high), self.b.icmp("ne", size, self._splat(0)))
            for size in sizes
        ]
        return reduce(partial(self.b.binary, "or"), far)

    def _least(self, x: Value, y: Value) -> Value:
        return self.b.call_intrinsic("llvm.umin", [x.type], x.type, [x, y])

    def _outside(self, words: Value, low: int, high: int) -> Value:
        return self.b.icmp("ugt", self.b.binary("sub", words, self._splat(low)), self._splat(high - low))

    def _power(self, exponent: int) -> int:
        """The bits of a power of two."""
        return (127 + exponent) << (self.element.bits - 9)

    def _words(self, x: Value) -> Value:
        return self.b.cast("bitcast", x, VectorType(self.count, self.element))

    def _splat(self, number: int) -> Value:
        half = 1 << (self.element.bits - 1)
        return const_ints(self.element, [(number + half) % (2 * half) - half] * self.count)


_RECIPROCAL: Final = "arcp"
"""A flag of divisions: LLVM's code for it has errors of two ulp and no NaN for infinities, so that none is emitted."""
_GUARDED_REGISTERS: Final = 4
"""Registers of quotients for which one branch decides whether any may be subnormal."""


def divided(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    numerators: Sequence[Value],
    divisors: Sequence[Value],
) -> list[Value]:
    """Quotients of registers, in about the same time for all operands: see `tlx.lower.legalize.math.division`.

    Quotients of half are computed in float, where none is subnormal, and machines with grids take the same time for all
    operands. With `arcp`, the program could multiply by reciprocals: subnormal numbers are not expected. The builder
    may be in another block afterwards.
    """
    is_plain = _RECIPROCAL in operation.flags
    operation = replace(operation, flags=tuple(flag for flag in operation.flags if flag != _RECIPROCAL))
    if is_plain or element not in (FLOAT, DOUBLE, BFLOAT) or not target.instructions.has_fma or target.grid is not None:
        return _by_instruction(b, target, operation, element, numerators, divisors)
    results: list[Value] = []
    for start in range(0, len(numerators), _GUARDED_REGISTERS):
        part, by = (registers[start : start + _GUARDED_REGISTERS] for registers in (numerators, divisors))
        divide = partial(_by_instruction, b, target, operation, element, part, by)
        if element == BFLOAT:
            results += _divided_bfloats(b, target, part, by, divide)
        else:
            results += quotients(lanes_of(b, target, part[0], element), part, by, divide)
    return results


def _divided_bfloats(
    b: Builder,
    target: Target,
    numerators: Sequence[Value],
    divisors: Sequence[Value],
    divide: Callable[[], list[Value]],
) -> list[Value]:
    """Quotients of registers of bfloat, all computed in float."""
    operands = _bfloat_operands(b, target, numerators, divisors)
    instructions = operands.floats.float_instructions

    def careful() -> list[Value]:
        if instructions is None:  # they are for whole registers
            return begin_quotients(operands, DivisionCase.ANY).finish()
        pairs = zip(operands.widened(numerators), operands.widened(divisors), strict=True)
        return operands.signed(operands.rounded(rounded_ratios(operands.floats, instructions, list(pairs))))

    if target.instructions.functions is None:
        return quotients_by_case(operands, divide)
    extremes = Extremes.of(operands)
    return branch_if_any_lane(extremes.lanes, extremes.may_have_subnormal_quotients(), careful, divide)


def _bfloat_operands(
    b: Builder, target: Target, numerators: Sequence[Value], divisors: Sequence[Value]
) -> DivisionOperands:
    """Registers of bfloat, each of which is divided as one or two of floats: its even and its odd elements."""
    type_ = numerators[0].type
    assert isinstance(type_, VectorType)
    are_pairs = works_on_float_pairs(target.vector_bytes, BFLOAT, [BFLOAT], numerators[0])

    def widened(registers: Sequence[Value]) -> list[Value]:
        if are_pairs:
            return [half for register in registers for half in even_and_odd(b, register)]
        return [convert_register(b, target, "fpext", register, BFLOAT, FLOAT) for register in registers]

    def joined(registers: Sequence[Value], rounding: BfloatRounding) -> list[Value]:
        halves = zip(registers[::2], registers[1::2], strict=True)
        return [joined_floats(b, target, even, odd, rounding) for even, odd in halves]

    def rounded(registers: Sequence[Value]) -> list[Value]:
        if are_pairs:
            return joined(registers, BfloatRounding.HALF_TO_EVEN)
        return [convert_register(b, target, "fptrunc", register, FLOAT, BFLOAT) for register in registers]

    def truncated(registers: Sequence[Value]) -> list[Value]:
        if are_pairs:
            return joined(registers, BfloatRounding.TRUNCATE)
        upper = [floats.integer_op("lshr", floats.bits(register), 16) for register in registers]
        return [b.cast("trunc", word, VectorType(type_.count, I16)) for word in upper]

    count = type_.count // 2 if are_pairs else type_.count
    example = Keyword(VectorType(count, FLOAT), "poison")
    floats = lanes_of(b, target, example, FLOAT, Accuracy(short=True))
    return DivisionOperands(
        LaneArithmetic(b, type_.count, BFLOAT), numerators, divisors, floats, widened, rounded, truncated
    )


def _by_instruction(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    numerators: Sequence[Value],
    divisors: Sequence[Value],
) -> list[Value]:
    types = [element, element]
    pairs = zip(numerators, divisors, strict=True)
    return [emit_elementwise(b, target, operation, element, types, pair) for pair in pairs]


def quotients_only_rounded(
    function: Function, tensors: FunctionTensors, instructions: VectorInstructions
) -> dict[str, Instruction]:
    """Divisions of rows of floats by a number each whose only use is a rounding to bfloat or half, by its result."""
    if instructions.estimates is None:
        return {}
    defined, used = definitions(function), uses(function)
    found: dict[str, Instruction] = {}
    for instruction in function.instructions():
        if instruction.opcode != "fptrunc" or scalar_of(instruction.type) not in (BFLOAT, HALF):
            continue
        source = instruction.operands[0]
        division = defined.get(source.name) if isinstance(source, Local) else None
        if division is None or division.opcode != "fdiv" or instruction.result is None:
            continue
        is_rows = scalar_of(division.type) == FLOAT and is_by_row(division, tensors)
        if is_rows and len(used.get(division.result or "", ())) == 1:
            found[instruction.result] = division
    return found


def is_by_row(division: Instruction, tensors: FunctionTensors) -> bool:
    """Whether the divisor of a tile is one number for each row."""
    divisor = tensors.definition_of(division.operands[1])
    return divisor is not None and divisor.intrinsic.name == "broadcast" and divisor.tensors[0].type.shape[-1] == 1


def products_with_subnormals(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    factors: Sequence[Value],
    numbers: Sequence[Value],
) -> list[Value]:
    """Products by factors from 0 that may be subnormal, in about the same time for all of them.

    Empty where the instruction is emitted as it is: on machines with grids, to which all factors are alike, and on
    those with instructions for exponents, where a branch takes 2 to 10 % of the time of x sigmoid(x) (Xeon 6/207/2,
    `avx512`, 2026-11-30). The builder may be in another block afterwards.
    """
    has_branch = target.instructions.has_fma and target.grid is None and target.instructions.functions is None
    if element not in (FLOAT, DOUBLE, BFLOAT) or not has_branch:
        return []

    def multiplied(element: Type, pairs: Sequence[tuple[Value, Value]]) -> list[Value]:
        def multiply() -> list[Value]:
            return [emit_elementwise(b, target, operation, element, [element, element], pair) for pair in pairs]

        return subnormal_products(lanes_of(b, target, pairs[0][0], element), pairs, multiply)

    if element != BFLOAT:
        return multiplied(element, list(zip(factors, numbers, strict=True)))
    if not works_on_float_pairs(target.vector_bytes, BFLOAT, [BFLOAT], factors[0]):
        return []
    results: list[Value] = []
    for pair in zip(factors, numbers, strict=True):
        halves = [even_and_odd(b, register) for register in pair]
        even, odd = multiplied(FLOAT, list(zip(*halves, strict=True)))
        results.append(joined_floats(b, target, even, odd, BfloatRounding.HALF_TO_EVEN))
    return results


_LOWER_HALF: Final = 0xFFFF


def i16_factors(function: Function, tensors: FunctionTensors) -> dict[str, int]:
    """Names of i32 vectors that were extended from at most 16 bits, with a rank for the factor to clear.

    2 for vectors that were zero-extended, 1 for broadcast ones, 0 for all others.
    """
    ranks: dict[str, int] = {}
    for instruction in function.instructions():
        if instruction.opcode in ("sext", "zext") and instruction.result and scalar_of(instruction.type) == I32:
            value, is_zero = instruction.operands[0], instruction.opcode == "zext"
            source, definition = scalar_of(value.type), tensors.definition_of(value)
            if source == I8 or (source == I16 and not is_zero):
                is_broadcast = definition is not None and definition.intrinsic.name == "broadcast"
                ranks[instruction.result] = 2 if is_zero else int(is_broadcast)
    return ranks


def i16_products(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    factors: Sequence[tuple[Value, list[Value] | Value]],
    ranks: dict[str, int],
) -> list[Value]:
    """The registers of a product of short factors; empty for other operations, or without an instruction.

    Args:
        b: The builder.
        target: The machine.
        operation: The operation.
        factors: Each operand with its registers.
        ranks: The result of `i16_factors`.
    """
    word = ("i16", "s")
    kinds = (d for d in target.usable_dots if (d.lhs, d.rhs, d.width, d.scratch_registers) == (word, word, 2, 1))
    dot = next(kinds, None)
    if operation.opcode != "mul" or dot is None:
        return []
    short = [(ranks[v.name], r) for v, r in factors if isinstance(v, Local) and v.name in ranks and isinstance(r, list)]
    if len(short) < 2 or any(_register_bits(r) != target.vector_bytes * 8 for _, registers in short for r in registers):
        return []
    (_, other), (rank, cleared) = sorted(short, key=lambda factor: factor[0])
    if rank < 2:
        masked = {
            r: b.binary("and", r, const_ints(I32, [_LOWER_HALF] * (_register_bits(r) // 32)))
            for r in dict.fromkeys(cleared)
        }
        cleared = [masked[r] for r in cleared]
    return [dot.emit(b, zero(x.type), x, y) for x, y in zip(other, cleared, strict=True)]


def _register_bits(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count * bits_of(register.type.element)
