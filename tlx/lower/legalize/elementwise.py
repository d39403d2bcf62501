"""Elementwise instructions on registers, in forms that no LLVM from 14 on turns into library calls.

bfloat and half are computed in float and rounded back: that is exact for sums, products, quotients and roots, as float
has more than twice their precision. What only moves elements, or changes signs, works on their bits.

A register of bfloat is computed as two of float, of its even and of its odd elements:

    | e0 o0 | e1 o1 | ...     <32 x bfloat> as words of 32 bits

    even = word << 16                 odd = word & 0xFFFF0000              a bfloat is the upper half of a float
    word = even >> 16 | odd & 0xFFFF0000

No element changes lane, which would use the only shuffle port of many machines, and it takes half as many instructions
as extending and joining halves of a register.

The code of several registers is interleaved, as their dependency chains are independent:

    a0 = f(x0)  b0 = g(a0)  ...  a1 = f(x1)  b1 = g(a1)   ->   a0 = f(x0)  a1 = f(x1)  b0 = g(a0)  b1 = g(a1)

Out-of-order execution covers some hundred instructions, fewer when two threads share a core: long chains one after the
other would leave ports idle.

Division of several registers by one number, rounded as by the instruction: division of 512 bits takes 16 cycles on
Intel's machines. With y = 1/d, rounded, which is computed once,

    q0 = n y,    q1 = q0 - (q0 d - n) y,    q2 = q1 - (q1 d - n) y

q1 is one of the two floats next to n/d, so that its remainder is exact, and q2 is n/d rounded to nearest (Markstein,
"Computation of elementary functions on the IBM RISC System/6000 processor", 1990). That requires normal remainders, and
a positive d for the sign of zeros. So d has to be between 2^-24 and 2^24, and n zero or of magnitude between 2^-100 and
2^100; if some element is not, all are divided by the instruction.

bfloat needs no remainder: n y is off by 2^-23, and no quotient of two 8-bit significands is within 2^-17 of the middle
between two others, unless it is denormal.

Products of i32 that were extended from at most 16 bits use multiply-adds of i16 pairs, as VPMULLD is slow:

    %x = sext <16 x i8> %a to <16 x i32>        pairs (x, sign of x)
    %w = sext <16 x i8> %b to <16 x i32>        pairs (w, 0) once the upper half is cleared
    %p = mul <16 x i32> %x, %w             ->   vpmaddwd %x, %w & 0xFFFF                x w + sign 0

The upper half is cleared in the factor that is broadcast. LLVM does the same only if the extensions are in the block of
the product; it merges VPMADDWD and a following sum into VPDPWSSD.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, pairwise
from typing import Final

from tlx.ir.builder.instructions import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import CAST_OPCODES
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    I8,
    I16,
    I32,
    I64,
    FloatType,
    IntType,
    Type,
    VectorType,
    bits_of,
    scalar_of,
)
from tlx.ir.values import Local, Value, const_ints, zero
from tlx.lower.legalize.conversions import (
    ROUNDINGS,
    as_bits,
    compare,
    convert_register,
    float_to_narrow,
    fma_rounded_once,
    odd_float,
    odd_fused,
    rounded_to_integer,
)
from tlx.lower.legalize.math.arithmetic import LaneArithmetic, where_any
from tlx.lower.legalize.registers import register_element, splat_like
from tlx.lower.operations import MATH_INTRINSICS, ElementwiseOp
from tlx.target.target import Target

_UPPER: Final = -0x10000
_HALF: Final = 0x8000
_LAST: Final = 0x10000


def has_masks(target: Target) -> bool:
    """Whether comparisons yield mask registers with a bit for each element, as AVX-512's do."""
    return 16 in target.masked_bits


def works_on_float_pairs(target: Target, element: Type, sources: Sequence[Type], register: Value) -> bool:
    """Whether operands and result are all bfloat, and the register is too wide for one register of floats."""
    type_ = register.type
    assert isinstance(type_, VectorType)
    is_large = type_.count % 2 == 0 and type_.count * 32 > target.vector_bytes * 8
    return is_large and element == BFLOAT and all(s == BFLOAT for s in sources)


def in_float_pairs(
    b: Builder,
    target: Target,
    registers: Sequence[Value],
    compute: Callable[[Sequence[Value]], Value],
    *,
    exact: bool = False,
) -> Value:
    """An operation on registers of bfloat, computed in float on even and odd elements.

    Args:
        b: The builder.
        target: The machine.
        registers: The operands.
        compute: Emits the operation on registers of half as many floats.
        exact: Whether the results are exact in bfloat, and need no rounding.
    """
    operands = [even_and_odd(b, register) for register in registers]
    halves = [[pair[i] for pair in operands] for i in range(2)]
    even, odd = [_words(b, x) for x in emit_interleaved(b, [partial(compute, half) for half in halves])]
    if not exact:
        even = rounded_words(b, target, even)
    upper = b.binary("and", odd, splat_like(odd, _UPPER)) if exact else _rounded_upper(b, target, odd)
    joined = b.binary("or", upper, b.binary("lshr", even, splat_like(even, 16)))
    return b.cast("bitcast", joined, registers[0].type)


def even_and_odd(b: Builder, register: Value) -> tuple[Value, Value]:
    """The even elements as float, and the odd ones."""
    words = _pairs(b, register)
    return _floats(b, b.binary("shl", words, splat_like(words, 16))), upper_half(b, register)


def upper_half(b: Builder, register: Value) -> Value:
    """The odd elements as float."""
    words = _pairs(b, register)
    return _floats(b, b.binary("and", words, splat_like(words, _UPPER)))


def _pairs(b: Builder, register: Value) -> Value:
    assert isinstance(register.type, VectorType)
    return b.cast("bitcast", register, VectorType(register.type.count // 2, I32))


def _floats(b: Builder, words: Value) -> Value:
    assert isinstance(words.type, VectorType)
    return b.cast("bitcast", words, VectorType(words.type.count, FLOAT))


def rounded_words(b: Builder, target: Target, word: Value) -> Value:
    """The bits of floats with the upper half rounded to nearest even; the lower half is undefined.

    NaN stays NaN if its lower half is zero, as for every NaN that comes from bfloat operands. Half an ulp is added; if
    the lower half is zero then, it was a tie, and the last bit is cleared. A machine without masks adds slightly less
    to even numbers.
    """
    if has_masks(target):
        up, is_tie = _up(b, word)
        return b.select(is_tie, b.binary("and", up, splat_like(up, ~_LAST)), up)
    odd = b.binary("and", b.binary("lshr", word, splat_like(word, 16)), splat_like(word, 1))
    return b.binary("add", word, b.binary("add", odd, splat_like(word, _HALF - 1)))


def _rounded_upper(b: Builder, target: Target, word: Value) -> Value:
    """The same with a lower half of zeros.

    One mask clears both the lower half and, in a tie, the last bit, so that LLVM does not turn it into a shuffle. A
    shuffle of 16-bit elements of two sources takes three uops on Intel's machines, a shift and VPTERNLOG two.
    """
    if has_masks(target):
        up, is_tie = _up(b, word)
        return b.binary("and", up, b.select(is_tie, splat_like(up, _UPPER & ~_LAST), splat_like(up, _UPPER)))
    word = rounded_words(b, target, word)
    return b.binary("and", word, splat_like(word, _UPPER))


def _up(b: Builder, word: Value) -> tuple[Value, Value]:
    """Bits plus half an ulp of the upper half, and whether the lower half is zero then."""
    up = b.binary("add", word, splat_like(word, _HALF))
    return up, b.icmp("eq", b.binary("and", up, splat_like(up, ~_UPPER)), splat_like(up, 0))


def _words(b: Builder, x: Value) -> Value:
    assert isinstance(x.type, VectorType)
    return b.cast("bitcast", x, VectorType(x.type.count, I32))


def emit_interleaved(b: Builder, makes: Sequence[Callable[[], Value]]) -> list[Value]:
    """Call each function and interleave their instructions, if they are equally many and in one block."""
    block, marks, made = b.block, [b.index], list[Value]()
    for make in makes:
        made.append(make())
        marks.append(b.index)
    pieces = [block.instructions[start:end] for start, end in pairwise(marks)]
    if b.block is block and len({len(piece) for piece in pieces}) == 1:
        block.instructions[marks[0] : marks[-1]] = chain.from_iterable(zip(*pieces, strict=True))
    return made


_NARROW: Final = (BFLOAT, HALF)
_LIBRARY: Final = frozenset(
    f"llvm.{n}" for n in ("pow", "powi", "ldexp", "exp10", "tan", "sinh", "cosh", "asin", "acos", "atan", "atan2")
)
_ROUNDINGS: Final = frozenset(f"llvm.{name}" for name in ROUNDINGS)
_EXTREMES: Final = {
    "llvm.minnum": "olt",
    "llvm.maxnum": "ogt",
    "llvm.minimumnum": "olt",
    "llvm.maximumnum": "ogt",
    "llvm.minimum": "olt",
    "llvm.maximum": "ogt",
}


def emit_elementwise(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    sources: Sequence[Type],
    registers: Sequence[Value],
) -> Value:
    """Emit one register of the result.

    Args:
        b: The builder.
        target: The machine.
        operation: The operation.
        element: Element type of the result.
        sources: Element types of the operands.
        registers: The operands, bfloat and half as i16; immediates are scalars.
    """
    opcode = operation.opcode
    if opcode in CAST_OPCODES:
        return convert_register(b, target, opcode, registers[0], sources[0], element)
    if opcode in ("select", "freeze"):
        plain = ElementwiseOp(opcode, operation.flags if element not in _NARROW else ())
        return plain.emit(b, _register(registers, element), registers)
    if operation.callee.removeprefix("llvm.") in MATH_INTRINSICS:
        return emit_math(b, target, operation.callee.removeprefix("llvm."), element, registers[0])
    if opcode == "fneg" and element in _NARROW:
        return b.binary("xor", registers[0], splat_like(registers[0], -0x8000))
    if operation.callee in ("llvm.fabs", "llvm.copysign") and element in _NARROW:
        return _signs(b, registers)
    if operation.callee == "llvm.fma" and (element in _NARROW or (element == FLOAT and not target.fused)):
        return _fma(b, target, element, registers)
    if element in _NARROW or any(s in _NARROW for s in sources):
        return _as_float(b, target, operation, element, sources, registers)
    if operation.callee in _ROUNDINGS and not (target.rounds and operation.callee != "llvm.round"):
        return rounded_to_integer(b, operation.callee.removeprefix("llvm."), registers[0])
    if operation.callee == "llvm.canonicalize":
        return _quieted(b, registers[0])
    if operation.callee in _EXTREMES:
        return _extreme(b, operation.callee, registers[0], registers[1])
    if operation.callee == "llvm.fmuladd" and target.fused:
        operation = ElementwiseOp("call", operation.flags, "", "llvm.fma")
    return operation.emit(b, _register(registers, element), registers)


def library_call(target: Target, operation: ElementwiseOp, element: Type) -> bool:
    """Whether LLVM lowers an operation to calls of the C library, one for each element."""
    if operation.callee == "llvm.fma":
        return element == DOUBLE and not target.fused
    return operation.opcode == "frem" or operation.callee in _LIBRARY


def emit_math(b: Builder, target: Target, name: str, element: Type, register: Value) -> Value:
    """A function such as tanh of one register, as vector code."""
    from tlx.lower.legalize.math import emit_math_function

    if element == DOUBLE:
        return emit_math_function(b, target, name, register, element)
    if works_on_float_pairs(target, element, [element], register):
        return in_float_pairs(
            b, target, [register], lambda x: emit_math_function(b, target, name, x[0], FLOAT, short=True)
        )
    wide = convert_register(b, target, "fpext", register, element, FLOAT) if element != FLOAT else register
    result = emit_math_function(b, target, name, wide, FLOAT, short=element == BFLOAT)
    return result if element == FLOAT else convert_register(b, target, "fptrunc", result, FLOAT, element)


def emit_unary(b: Builder, target: Target, name: str, element: Type, register: Value) -> Value:
    """A unary tensor operation of one register: relu, sqrt, fabs, floor, ceil and the functions of `emit_math`."""
    if name == "relu":
        return _relu(b, element, register)
    if name in MATH_INTRINSICS:
        return emit_math(b, target, name, element, register)
    return emit_elementwise(b, target, ElementwiseOp("call", (), "", f"llvm.{name}"), element, [element], [register])


def _relu(b: Builder, element: Type, register: Value) -> Value:
    """The number where it is positive or NaN, else 0.

    16-bit floats are compared as bits: negative numbers are 0x8000 up to -infinity, and larger bits are NaN.
    """
    if not isinstance(element, FloatType):
        return b.select(b.icmp("sgt", register, zero(register.type)), register, zero(register.type))
    if element in _NARROW:
        unsigned = b.binary("xor", register, splat_like(register, -0x8000))
        infinity = splat_like(register, 0x7F80 if element == BFLOAT else 0x7C00)
        return b.select(b.icmp("ugt", unsigned, infinity), register, zero(register.type))
    return b.select(compare(b, "ugt", register, zero(register.type)), register, zero(register.type))


def _as_float(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    element: Type,
    sources: Sequence[Type],
    registers: Sequence[Value],
) -> Value:
    """The operation in float, with bfloat and half operands extended and the result rounded."""
    if works_on_float_pairs(target, element, sources, registers[0]):
        types = [FLOAT] * len(registers)
        exact = operation.callee in _ROUNDINGS or operation.callee in _EXTREMES
        return in_float_pairs(
            b, target, registers, lambda x: emit_elementwise(b, target, operation, FLOAT, types, x), exact=exact
        )
    wide = [
        convert_register(b, target, "fpext", r, s, FLOAT) if s in _NARROW else r
        for r, s in zip(registers, sources, strict=True)
    ]
    types = [FLOAT if s in _NARROW else s for s in sources]
    if element not in _NARROW:
        return emit_elementwise(b, target, operation, element, types, wide)
    result = emit_elementwise(b, target, operation, FLOAT, types, wide)
    return convert_register(b, target, "fptrunc", result, FLOAT, element)


def _fma(b: Builder, target: Target, element: Type, registers: Sequence[Value]) -> Value:
    if element == FLOAT:
        return fma_rounded_once(b, *registers)
    wide = [convert_register(b, target, "fpext", r, element, FLOAT) for r in registers]
    return float_to_narrow(b, target, odd_float(b, odd_fused(b, *wide)), element)


def _signs(b: Builder, registers: Sequence[Value]) -> Value:
    """fabs, copysign: on the bits of 16-bit floats."""
    size = b.binary("and", registers[0], splat_like(registers[0], 0x7FFF))
    if len(registers) == 1:
        return size
    return b.binary("or", size, b.binary("and", registers[1], splat_like(registers[1], -0x8000)))


def _quieted(b: Builder, x: Value) -> Value:
    """canonicalize, which LLVM 14 to 19 cannot select: a signalling NaN becomes quiet."""
    assert isinstance(x.type, VectorType)
    element, quiet = (I64, 1 << 51) if x.type.element == DOUBLE else (I32, 1 << 22)
    marked = b.binary("or", as_bits(b, x), const_ints(element, [quiet] * x.type.count))
    return b.select(compare(b, "uno", x, x), b.cast("bitcast", marked, x.type), x)


def _extreme(b: Builder, callee: str, x: Value, y: Value) -> Value:
    """minnum, maxnum, minimumnum and maximumnum ignore a NaN; minimum and maximum propagate it.

    minnum and maxnum may return either of -0 and 0; for the others -0 is less.
    """
    predicate = _EXTREMES[callee]
    if callee in ("llvm.minnum", "llvm.maxnum"):
        best = b.select(compare(b, predicate, x, y), x, y)
        return b.select(compare(b, "uno", y, y), x, best)
    other = compare(b, predicate, y, x)
    equal = _equal_or_nan(b, x, y, least=predicate == "olt")
    best = b.select(compare(b, predicate, x, y), x, b.select(other, y, equal))
    if callee in ("llvm.minimum", "llvm.maximum"):
        return best
    return b.select(compare(b, "uno", y, y), x, b.select(compare(b, "uno", x, x), y, best))


def _equal_or_nan(b: Builder, x: Value, y: Value, *, least: bool) -> Value:
    """The lesser (greater) of two equal numbers, by sign; NaN where one is NaN, whose bits an or preserves."""
    bits, other = as_bits(b, x), as_bits(b, y)
    both = b.binary("or", bits, other)
    if not least:
        signs = as_bits(b, splat_like(x, -0.0))
        differ = b.binary("and", b.binary("xor", bits, other), signs)
        both = b.binary("xor", both, differ)
    return b.cast("bitcast", both, x.type)


def _register(registers: Sequence[Value], element: Type) -> VectorType:
    """The type of a result as wide as the operands."""
    count = next(r.type.count for r in registers if isinstance(r.type, VectorType))
    return VectorType(count, register_element(element))


_DIVISION: Final = ElementwiseOp("fdiv")
_LARGEST: Final = 100
"""Exponent of the largest numerator, and of the reciprocal of the smallest."""
_LARGEST_DIVISOR: Final = 24


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
    if target.float_instructions is None:
        return False
    if element == BFLOAT:
        return all(works_on_float_pairs(target, element, [element], d) for d in divisors)
    return element == FLOAT and all(isinstance(d.type, VectorType) and _is_whole(target, d.type) for d in divisors)


def _is_whole(target: Target, type_: VectorType) -> bool:
    return type_.count * 32 == target.vector_bytes * 8


def divide_registers(
    b: Builder, target: Target, element: Type, numerators: Sequence[Value], divisor: Value
) -> list[Value]:
    """Quotients of registers of float or bfloat by a splat, the last register.

    The builder is in another block afterwards.
    """
    assert isinstance(divisor.type, VectorType)
    lanes = LaneArithmetic(b, divisor.type.count, FLOAT)
    bits = _Bits(b, I16 if element == BFLOAT else I32, divisor.type.count)
    rare = bits.is_no_divisor(divisor)
    for numerator in numerators:
        rare = b.binary("or", rare, bits.is_no_numerator(numerator))
    if element == BFLOAT:
        fast = _of_bfloat(b, target, numerators, divisor)
    else:
        inverse = lanes.div(1.0, divisor)
        fast = [_quotient(lanes, n, divisor, inverse) for n in numerators]
    types = [element, element]
    return where_any(
        lanes,
        rare,
        fast,
        lambda: [emit_elementwise(b, target, _DIVISION, element, types, [n, divisor]) for n in numerators],
    )


def _quotient(lanes: LaneArithmetic, numerator: Value, divisor: Value, inverse: Value) -> Value:
    quotient = lanes.mul(numerator, inverse)
    for _ in range(2):
        rest = lanes.multiply_add(quotient, divisor, lanes.negative(numerator))
        quotient = lanes.multiply_add(lanes.negative(rest), inverse, quotient)
    return quotient


def _of_bfloat(b: Builder, target: Target, numerators: Sequence[Value], divisor: Value) -> list[Value]:
    assert isinstance(divisor.type, VectorType)
    lanes = LaneArithmetic(b, divisor.type.count // 2, FLOAT)
    inverse = lanes.div(1.0, upper_half(b, divisor))
    return [in_float_pairs(b, target, [n], lambda x: lanes.mul(x[0], inverse)) for n in numerators]


@dataclass(frozen=True, slots=True)
class _Bits:
    """Range checks of numbers by their bits: an exponent of 8 bits above the fraction.

    Attributes:
        b: The builder.
        element: The integer type as wide as a number.
        count: Elements of a register.
    """

    b: Builder
    element: IntType
    count: int

    def is_no_divisor(self, x: Value) -> Value:
        """Where a number is not between 2^-24 and 2^24."""
        return self._outside(self._words(x), self._power(-_LARGEST_DIVISOR), self._power(_LARGEST_DIVISOR))

    def is_no_numerator(self, x: Value) -> Value:
        """Where a number is neither zero nor of magnitude between 2^-100 and 2^100."""
        words = self._words(x)
        size = self.b.binary("shl", words, self._all(1))
        far = self._outside(size, 2 * self._power(-_LARGEST), 2 * self._power(_LARGEST))
        return self.b.binary("and", far, self.b.icmp("ne", size, self._all(0)))

    def _outside(self, words: Value, low: int, high: int) -> Value:
        return self.b.icmp("ugt", self.b.binary("sub", words, self._all(low)), self._all(high - low))

    def _power(self, exponent: int) -> int:
        """The bits of a power of two."""
        return (127 + exponent) << (self.element.bits - 9)

    def _words(self, x: Value) -> Value:
        return self.b.cast("bitcast", x, VectorType(self.count, self.element))

    def _all(self, number: int) -> Value:
        half = 1 << (self.element.bits - 1)
        return const_ints(self.element, [(number + half) % (2 * half) - half] * self.count)


_LOWER: Final = 0xFFFF


def short_factors(function: Function, tensors: FunctionTensors) -> dict[str, int]:
    """Names of i32 vectors that were extended from at most 16 bits, with a rank for the factor to clear.

    2 for vectors that were zero-extended, 1 for broadcast ones, 0 for all others.
    """
    found: dict[str, int] = {}
    for instruction in function.instructions():
        if instruction.opcode in ("sext", "zext") and instruction.result and scalar_of(instruction.type) == I32:
            value, is_zero = instruction.operands[0], instruction.opcode == "zext"
            source, maker = scalar_of(value.type), tensors.maker_of(value)
            if source == I8 or (source == I16 and not is_zero):
                is_repeated = maker is not None and maker.intrinsic.name == "broadcast"
                found[instruction.result] = 2 if is_zero else int(is_repeated)
    return found


def short_products(
    b: Builder,
    target: Target,
    operation: ElementwiseOp,
    factors: Sequence[tuple[Value, list[Value] | Value]],
    short: dict[str, int],
) -> list[Value]:
    """The registers of a product of short factors; empty for other operations, or without an instruction.

    Args:
        b: The builder.
        target: The machine.
        operation: The operation.
        factors: Each operand with its registers.
        short: The result of `short_factors`.
    """
    word = ("i16", "s")
    kinds = (d for d in target.usable_dots if (d.lhs, d.rhs, d.width, d.temporaries) == (word, word, 2, 1))
    dot = next(kinds, None)
    if operation.opcode != "mul" or dot is None:
        return []
    known = [(short[v.name], r) for v, r in factors if isinstance(v, Local) and v.name in short and isinstance(r, list)]
    if len(known) < 2 or any(_register_bits(r) != target.vector_bytes * 8 for _, registers in known for r in registers):
        return []
    (_, other), (kind, cleared) = sorted(known, key=lambda factor: factor[0])
    if kind < 2:
        made = {
            r: b.binary("and", r, const_ints(I32, [_LOWER] * (_register_bits(r) // 32))) for r in dict.fromkeys(cleared)
        }
        cleared = [made[r] for r in cleared]
    return [dot.emit(b, zero(x.type), x, y) for x, y in zip(other, cleared, strict=True)]


def _register_bits(register: Value) -> int:
    assert isinstance(register.type, VectorType)
    return register.type.count * bits_of(register.type.element)
