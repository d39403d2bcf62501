"""Ordinary LLVM instructions and intrinsics on flattened vectors as statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.fuzz.generation.dataflow import (
    FLOATS,
    INTEGERS,
    DataflowWriter,
    KnownValue,
    Operation,
    ValueFacts,
    range_facts,
    result_range,
    unknown_facts,
)
from tlx.fuzz.generation.model import LARGEST_EXACT
from tlx.fuzz.generation.operations.tensor import ulps_of, unary_facts
from tlx.intrinsics.small_floats import CONVERSIONS, FROM_SMALL, NEAREST, SMALL_FLOATS, TO_SMALL
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import (
    BFLOAT,
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I16,
    I32,
    I64,
    FloatType,
    IntType,
    Type,
    VectorType,
    mangle,
)


def _intrinsic(
    writer: DataflowWriter, name: str, operands: list[KnownValue], element: Type, facts: ValueFacts, *more: str
) -> KnownValue:
    """A call of an `llvm.*` intrinsic, with its declaration."""
    type_ = operands[0].type
    result = TensorType(element, type_.shape, type_.layout, type_.padding)
    vector, vectors = writer.vector_type(result), [writer.vector_type(x.type) for x in operands]
    callee = f"@llvm.{name}.{_suffix(name, vectors, vector)}"
    types = [str(one) for one in vectors] + [text.split()[0] for text in more]
    writer.declarations.add(f"declare {vector} {callee}({', '.join(types)})")
    arguments = [*(x.vector.typed for x in operands), *more]
    return KnownValue(writer.call(f"{vector} {callee}({', '.join(arguments)})", result), facts)


def _suffix(name: str, operands: Sequence[VectorType], result: VectorType) -> str:
    """The types in an intrinsic's name: most often that of its result, and that of its operands if they differ."""
    own = mangle(operands[0])
    if name == "is.fpclass":
        return own
    if name == "powi":
        return f"{own}.i32"
    if name == "ldexp":
        return f"{own}.{mangle(operands[1])}"
    if name in _OVERLOADED_BY_BOTH or result != operands[0]:
        return f"{mangle(result)}.{own}"
    return own


_OVERLOADED_BY_BOTH: Final = frozenset("scmp ucmp lrint llrint lround llround".split())
_LARGEST_HALVED: Final = 100
"""Largest whole number whose half every type of floats represents."""


def _rounding(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue:
        x = writer.number(FLOATS)
        return _intrinsic(writer, name, [x], x.element, x.facts)

    return operation


def _function(name: str) -> Operation:
    """Functions of a float such as `fabs`, `exp`, `sin`."""

    def operation(writer: DataflowWriter) -> KnownValue:
        x = writer.number(FLOATS)
        return _intrinsic(writer, name, [x], x.element, unary_facts(name, x))

    return operation


def _power(writer: DataflowWriter) -> KnownValue | None:
    x = writer.number((FLOAT, DOUBLE))
    y = writer.partner(x)
    if not (x.facts.zeros and y.facts.zeros):
        return None
    return _intrinsic(writer, "pow", [x, y], x.element, ValueFacts(ulps=ulps_of(x.element), zeros=False))


def _extremum(name: str) -> Operation:
    """`minnum` and its variants: `minnum` and `maxnum` do not determine the sign of a zero result."""

    def operation(writer: DataflowWriter) -> KnownValue:
        x = writer.number(FLOATS)
        y = writer.partner(x)
        facts = x.facts.joined(y.facts)
        return _intrinsic(writer, name, [x, y], x.element, facts if "imum" in name else replace(facts, zeros=False))

    return operation


def _arc_tangent(writer: DataflowWriter) -> KnownValue | None:
    """`atan2`, which tells zeros of both signs apart."""
    y = writer.number(FLOATS)
    x = writer.partner(y)
    if not (x.facts.zeros and y.facts.zeros):
        return None
    return _intrinsic(writer, "atan2", [y, x], y.element, ValueFacts(ulps=ulps_of(y.element)))


def _class(writer: DataflowWriter) -> KnownValue | None:
    """`is.fpclass`; it does not tell quiet from signalling NaN, as instructions may turn one into the other."""
    x = writer.number(FLOATS)
    if not x.facts.zeros:
        return None
    classes = writer.random.randrange(1 << 8) << 2 | 3 * writer.random.randrange(2)
    return _intrinsic(writer, "is.fpclass", [x], I1, unknown_facts(I1), f"i32 {classes}")


def _scaled(writer: DataflowWriter) -> KnownValue:
    """`ldexp` by any exponents; LLVM 22 miscompiles a program's own small vectors of half with AVX-512."""
    x = writer.number(FLOATS if writer.is_run_time else (FLOAT, DOUBLE, BFLOAT))
    type_ = TensorType(I32, x.type.shape, x.type.layout, x.type.padding)
    exponents = writer.leaf_of(type_)
    if writer.chance(0.7):
        exponents = writer.instruction(
            "srem {}, {}", [exponents, _splat_of(writer, exponents, 40)], I32, unknown_facts(I32)
        )
    return _intrinsic(writer, "ldexp", [x, exponents], x.element, ValueFacts(zeros=x.facts.zeros))


def _integer_power(writer: DataflowWriter) -> KnownValue | None:
    """`powi` of whole numbers whose powers are exact."""
    x = writer.number(FLOATS, integral=True)
    power = writer.random.randrange(5)
    most = max(1, x.facts.bound) ** power
    if not x.facts.integral or most > LARGEST_EXACT[x.element]:
        return None
    facts = range_facts(x.element, -most, most, zeros=x.facts.zeros)
    return _intrinsic(writer, "powi", [x], x.element, facts, f"i32 {power}")


def _nearest_integer(name: str, elements: Sequence[Type]) -> Operation:
    """`lrint` and its variants, of halves and whole numbers that fit."""

    def operation(writer: DataflowWriter) -> KnownValue | None:
        x = writer.number(FLOATS, integral=True)
        if not x.facts.integral or x.facts.bound > _LARGEST_HALVED or x.type.is_padded:
            return None
        halves = writer.instruction("fmul {}, {}", [x, _splat_of(writer, x, 0.5)], x.element, ValueFacts())
        bound = x.facts.bound // 2 + 1
        return _intrinsic(writer, name, [halves], writer.random.choice(elements), ValueFacts(-bound, bound))

    return operation


def _order(name: str) -> Operation:
    """`scmp` and `ucmp`: -1, 0 or 1."""

    def operation(writer: DataflowWriter) -> KnownValue:
        x, y = _integers(writer)
        return _intrinsic(writer, name, [x, y], writer.random.choice(INTEGERS), ValueFacts(-1, 1))

    return operation


def _saturating_shift(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue:
        x, y = _integers(writer)
        amount = _valid_operand(writer, "and", y, width(x.element) - 1)
        return _intrinsic(writer, name, [x, amount], x.element, unknown_facts(x.element))

    return operation


def _copysign(writer: DataflowWriter) -> KnownValue | None:
    """`copysign`; signs come from small integers, since the sign of NaN is not determined."""
    x = writer.number(FLOATS)
    y = writer.partner(x, integral=True)
    if not (y.facts.integral and y.facts.zeros) or y.type.is_padded:
        return None
    facts = replace(x.facts, low=-x.facts.bound, high=x.facts.bound)
    return _intrinsic(writer, "copysign", [x, y], x.element, replace(facts, zeros=x.facts.zeros))


def _fused(name: str) -> Operation:
    """`fma`, or `fmuladd` on integers, for which it does not matter whether it rounds once or twice."""

    def operation(writer: DataflowWriter) -> KnownValue | None:
        narrow = name == "fmuladd" or writer.chance(0.5)
        x = writer.number(FLOATS if narrow else (FLOAT, DOUBLE), integral=narrow)
        y, z = writer.partner(x, integral=narrow), writer.partner(x, integral=narrow)
        low, high = result_range("add", ValueFacts(*result_range("mul", x.facts, y.facts)), z.facts)
        zeros = x.facts.zeros and y.facts.zeros and z.facts.zeros
        facts = ValueFacts(zeros=zeros)
        if x.facts.integral and y.facts.integral and z.facts.integral:
            facts = range_facts(x.element, low, high, zeros=zeros)
        if narrow and not facts.integral:
            return None
        return _intrinsic(writer, name, [x, y, z], x.element, facts)

    return operation


def _saturating_conversion(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue:
        x = writer.number(FLOATS)
        element = writer.random.choice(INTEGERS)
        return _intrinsic(writer, name, [x], element, unknown_facts(element))

    return operation


def _integer_function(name: str, operands: int, *more: str) -> Operation:
    """Functions of integers such as `smax`, `ctpop`, `fshl`."""

    def operation(writer: DataflowWriter) -> KnownValue:
        x = writer.number((I32, I16, I64) if name == "bswap" else INTEGERS)
        others = [writer.partner(x) for _ in range(operands - 1)]
        facts = x.facts.joined(others[0].facts) if name in ("smax", "smin") else unknown_facts(x.element)
        return _intrinsic(writer, name, [x, *others], x.element, facts, *more)

    return operation


def _from_small_float(writer: DataflowWriter) -> KnownValue:
    """Any bytes as floats."""
    format_, element = writer.random.choice(SMALL_FLOATS), writer.random.choice(FLOATS)
    x = writer.number((I8,))
    return _intrinsic(writer, _FROM_SMALL, [x], element, unknown_facts(element), f"metadata {format_.metadata}")


def _to_small_float(writer: DataflowWriter) -> KnownValue | None:
    """Whole numbers, whose signs are determined, as bytes; half of the time as floats again."""
    format_, x = writer.random.choice(SMALL_FLOATS), writer.number(FLOATS, integral=True)
    if not (x.facts.integral and x.facts.zeros):
        return None
    clamps = writer.random.choice(("true", "false"))
    metadata = f"metadata {format_.metadata}"
    more = metadata, f"metadata {NEAREST}", f"i1 {clamps}"
    narrow = _intrinsic(writer, _TO_SMALL, [x], I8, unknown_facts(I8), *more)
    if x.facts.bound > 1 << (format_.mantissa_bits + 1) or writer.chance(0.5):
        return narrow
    return _intrinsic(writer, _FROM_SMALL, [narrow], x.element, x.facts, metadata)


_FROM_SMALL, _TO_SMALL = (name.removeprefix("llvm.") for name in CONVERSIONS)
INTRINSICS: Final[dict[str, Operation]] = {
    FROM_SMALL: _from_small_float,
    TO_SMALL: _to_small_float,
    **{
        f"llvm.{name}": _rounding(name)
        for name in "trunc rint nearbyint round roundeven floor ceil canonicalize".split()
    },
    **{
        f"llvm.{name}": _function(name)
        for name in "fabs sqrt exp exp2 exp10 log log2 log10 sin cos tan tanh sinh cosh asin acos atan".split()
    },
    "llvm.pow": _power,
    "llvm.powi": _integer_power,
    "llvm.ldexp": _scaled,
    "llvm.atan2": _arc_tangent,
    "llvm.is.fpclass": _class,
    **{
        f"llvm.{name}": _extremum(name)
        for name in ("minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum")
    },
    **{f"llvm.{name}": _nearest_integer(name, (I32, I64)) for name in ("lrint", "lround")},
    **{f"llvm.{name}": _nearest_integer(name, (I64,)) for name in ("llrint", "llround")},
    **{f"llvm.{name}": _order(name) for name in ("scmp", "ucmp")},
    **{f"llvm.{name}": _saturating_shift(name) for name in ("sshl.sat", "ushl.sat")},
    "llvm.copysign": _copysign,
    **{f"llvm.{name}": _fused(name) for name in ("fma", "fmuladd")},
    **{f"llvm.{name}": _saturating_conversion(name) for name in ("fptosi.sat", "fptoui.sat")},
    **{f"llvm.{name}": _integer_function(name, 2) for name in ("smax", "smin", "umax", "umin")},
    **{f"llvm.{name}": _integer_function(name, 2) for name in ("sadd.sat", "ssub.sat", "uadd.sat", "usub.sat")},
    **{f"llvm.{name}": _integer_function(name, 1, "i1 false") for name in ("abs", "ctlz", "cttz")},
    **{f"llvm.{name}": _integer_function(name, 1) for name in ("ctpop", "bswap", "bitreverse")},
    **{f"llvm.{name}": _integer_function(name, 3) for name in ("fshl", "fshr")},
}
_INT_PREDICATES: Final = ("slt", "eq", "ne", "sgt", "sle", "sge", "ult", "ugt", "ule", "uge")
_FLOAT_PREDICATES: Final = tuple("olt oeq one ogt ole oge ord uno ueq une ult ule ugt uge true false".split())
_WIDTH: Final[dict[Type, int]] = {I1: 1, I8: 8, I16: 16, I32: 32, I64: 64, HALF: 16, BFLOAT: 16, FLOAT: 32, DOUBLE: 64}


def width(element: Type) -> int:
    """Bits of an element."""
    return _WIDTH[element]


# Integers ----------------------------------------------------------------------------------------------------------


def _integers(writer: DataflowWriter) -> tuple[KnownValue, KnownValue]:
    x = writer.number(INTEGERS)
    return x, writer.partner(x)


def _sum(name: str) -> Operation:
    """`add`, `sub` or `mul`, with `nsw` and `nuw` if nothing wraps."""

    def operation(writer: DataflowWriter) -> KnownValue:
        x, y = _integers(writer)
        low, high = result_range(name, x.facts, y.facts)
        facts = range_facts(x.element, low, high)
        is_exact = facts == ValueFacts(low, high)
        flags = _flag(writer, "nsw", allowed=is_exact)
        flags += _flag(writer, "nuw", allowed=is_exact and min(low, x.facts.low, y.facts.low) >= 0)
        return writer.instruction(f"{name}{flags} {{}}, {{}}", [x, y], x.element, facts)

    return operation


def _flag(writer: DataflowWriter, name: str, *, allowed: bool) -> str:
    """A flag, half of the time when what it promises is true."""
    return f" {name}" if allowed and writer.chance(0.5) else ""


def _bitwise(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue:
        if writer.chance(0.2):
            mask = writer.mask()
            return writer.instruction(f"{name} {{}}, {{}}", [mask, writer.partner(mask)], I1, unknown_facts(I1))
        x, y = _integers(writer)
        facts = unknown_facts(x.element)
        if name == "and" and min(x.facts.low, y.facts.low) >= 0:
            facts = ValueFacts(0, min(x.facts.high, y.facts.high))
        return writer.instruction(f"{name} {{}}, {{}}", [x, y], x.element, facts)

    return operation


def _valid_operand(writer: DataflowWriter, name: str, x: KnownValue, number: int) -> KnownValue:
    """An instruction with a splat constant: `and` or `or` that makes shift amounts and divisors valid."""
    facts = ValueFacts(0, number) if name == "and" else ValueFacts(1, max(x.facts.high, 0) | number)
    return writer.instruction(f"{name} {{}}, {{}}", [x, _splat_of(writer, x, number)], x.element, facts)


def _splat_of(writer: DataflowWriter, like: KnownValue, number: float) -> KnownValue:
    """A number in every element of a vector of the same type as another one."""
    return KnownValue(writer.splat_scalar(like.type, str(number)), ValueFacts(int(number), int(number)))


def _shift(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue:
        x, y = _integers(writer)
        amount = _valid_operand(writer, "and", y, width(x.element) - 1)
        return writer.instruction(f"{name} {{}}, {{}}", [x, amount], x.element, unknown_facts(x.element))

    return operation


def _division(name: str) -> Operation:
    """A division by a positive divisor: neither by zero, nor of the smallest number by -1."""

    def operation(writer: DataflowWriter) -> KnownValue:
        x, y = _integers(writer)
        largest = (1 << (width(x.element) - 1)) - 1
        divisor = _valid_operand(writer, "or", _valid_operand(writer, "and", y, largest), 1)
        return writer.instruction(f"{name} {{}}, {{}}", [x, divisor], x.element, unknown_facts(x.element))

    return operation


# Floats ------------------------------------------------------------------------------------------------------------


def _fast(writer: DataflowWriter, name: str, operands: Sequence[KnownValue], facts: ValueFacts) -> KnownValue:
    """An instruction on floats, one in four with fast-math flags: any on whole numbers that stay exact, else `nsz`."""
    x = operands[0]
    flags: list[str] = []
    if writer.chance(0.25):
        is_whole = facts.integral and all(operand.facts.integral for operand in operands)
        flags = writer.random.choice(_WHOLE_FLAGS) if is_whole else ["nsz"]
        facts = replace(facts, zeros=facts.zeros and not {"nsz", "fast"} & {*flags})
    form = " ".join([name, *flags, ", ".join("{}" for _ in operands)])
    return writer.instruction(form, operands, x.element, facts)


_WHOLE_FLAGS: Final = (
    ["nsz"],
    ["fast"],
    ["contract"],
    ["reassoc", "nsz"],
    ["nnan", "ninf"],
    ["nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"],
)


def _float_sum(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue:
        x = writer.number(FLOATS)
        y = writer.partner(x)
        low, high = result_range(name[1:], x.facts, y.facts)
        zeros = x.facts.zeros and y.facts.zeros
        integral = x.facts.integral and y.facts.integral
        facts = range_facts(x.element, low, high, zeros=zeros) if integral else ValueFacts(zeros=zeros)
        return _fast(writer, name, [x, y], facts)

    return operation


def _float_product(name: str) -> Operation:
    """`fmul`, `fdiv`: relative errors add up."""

    def operation(writer: DataflowWriter) -> KnownValue:
        x = writer.number(FLOATS, exact=False)
        y = writer.partner(x, exact=x.facts.is_exact)
        zeros = x.facts.zeros and y.facts.zeros
        loose = not (x.facts.is_exact and y.facts.is_exact)
        if (name == "fdiv" and not zeros) or (loose and not _is_moderate(x, y)):
            return _negated(writer, x)
        low, high = result_range("mul", x.facts, y.facts)
        facts = ValueFacts(zeros=zeros)
        if name == "fmul" and x.facts.integral and y.facts.integral:
            facts = range_facts(x.element, low, high, zeros=zeros)
        if loose:
            facts = replace(facts, integral=False, ulps=x.facts.ulps + y.facts.ulps + 1)
        return _fast(writer, name, [x, y], facts)

    return operation


def _is_moderate(x: KnownValue, y: KnownValue) -> bool:
    """Whether errors stay relative, as no subnormal numbers arise."""
    return x.facts.is_moderate and y.facts.is_moderate


def _negated(writer: DataflowWriter, x: KnownValue) -> KnownValue:
    facts = replace(x.facts, low=-x.facts.high, high=-x.facts.low)
    return _fast(writer, "fneg", [x], facts)


def _fneg(writer: DataflowWriter) -> KnownValue:
    return _negated(writer, writer.number(FLOATS, exact=False))


def _remainder(writer: DataflowWriter) -> KnownValue:
    x = writer.number(FLOATS)
    return writer.instruction("frem {}, {}", [x, writer.partner(x)], x.element, ValueFacts(zeros=x.facts.zeros))


# Comparisons and choices -------------------------------------------------------------------------------------------


def _icmp(writer: DataflowWriter) -> KnownValue:
    x, y = _integers(writer)
    return writer.instruction(f"icmp {writer.random.choice(_INT_PREDICATES)} {{}}, {{}}", [x, y], I1, unknown_facts(I1))


def _fcmp(writer: DataflowWriter) -> KnownValue:
    x = writer.number(FLOATS)
    predicate = writer.random.choice(_FLOAT_PREDICATES)
    return writer.instruction(f"fcmp {predicate} {{}}, {{}}", [x, writer.partner(x)], I1, unknown_facts(I1))


def _select(writer: DataflowWriter) -> KnownValue:
    """A select by a mask, or by a scalar condition from memory."""
    if writer.chance(0.25):
        x = writer.number(exact=False)
        y = writer.partner(x, exact=False)
        return _select_by_condition(writer, f"i1 {writer.condition()}", x, y)
    mask = writer.mask()
    x = writer.number_like(mask)
    y = writer.partner(x, exact=False)
    return _select_by_condition(writer, mask.vector.typed, x, y)


def _select_by_condition(writer: DataflowWriter, condition: str, x: KnownValue, y: KnownValue) -> KnownValue:
    vector = writer.let(f"select {condition}, {x.vector.typed}, {y.vector.typed}", x.type)
    return KnownValue(vector, x.facts.joined(y.facts))


# Conversions -------------------------------------------------------------------------------------------------------


def _extension(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue | None:
        x = writer.mask() if writer.chance(0.25) else writer.number((I8, I16, I32))
        wider = [e for e in INTEGERS if width(e) > width(x.element)]
        element = writer.random.choice(wider)
        low, high = x.facts.low, x.facts.high
        if name == "zext" and low < 0:
            low, high = 0, (1 << width(x.element)) - 1
        flag = _flag(writer, "nneg", allowed=name == "zext" and x.facts.low >= 0)
        return writer.instruction(f"{name}{flag} {{}} to {{}}", [x], element, ValueFacts(low, high))

    return operation


def _truncation(writer: DataflowWriter) -> KnownValue:
    x = writer.number((I32, I16, I64))
    element = writer.random.choice([e for e in (I8, I16, I32, I1) if width(e) < width(x.element)])
    facts = range_facts(element, x.facts.low, x.facts.high) if element != I1 else unknown_facts(I1)
    fits = element != I1 and facts == ValueFacts(x.facts.low, x.facts.high)
    flags = _flag(writer, "nuw", allowed=fits and x.facts.low >= 0) + _flag(writer, "nsw", allowed=fits)
    return writer.instruction(f"trunc{flags} {{}} to {{}}", [x], element, facts)


def _float_extension(writer: DataflowWriter) -> KnownValue:
    x = writer.number((FLOAT, HALF, BFLOAT))
    element = writer.random.choice([e for e in (FLOAT, DOUBLE) if width(e) > width(x.element)])
    return writer.instruction("fpext {} to {}", [x], element, x.facts)


def _float_truncation(writer: DataflowWriter) -> KnownValue:
    x = writer.number((DOUBLE, FLOAT))
    element = writer.random.choice([e for e in (HALF, BFLOAT, FLOAT) if width(e) < width(x.element)])
    facts = ValueFacts(zeros=x.facts.zeros)
    if x.facts.integral:
        facts = range_facts(element, x.facts.low, x.facts.high, zeros=x.facts.zeros)
    return writer.instruction("fptrunc {} to {}", [x], element, facts)


def _to_float(name: str) -> Operation:
    """A conversion to float that rounds at most once: not to half or bfloat through float."""

    def operation(writer: DataflowWriter) -> KnownValue | None:
        x = writer.number(INTEGERS)
        low, high = x.facts.low, x.facts.high
        if name == "uitofp" and low < 0:
            low, high = 0, (1 << width(x.element)) - 1
        narrow = max(abs(low), abs(high)) < LARGEST_EXACT[FLOAT]
        element = writer.random.choice([FLOAT, DOUBLE, HALF, BFLOAT] if narrow else [FLOAT, DOUBLE])
        flag = _flag(writer, "nneg", allowed=name == "uitofp" and x.facts.low >= 0)
        return writer.instruction(f"{name}{flag} {{}} to {{}}", [x], element, range_facts(element, low, high))

    return operation


def _to_integer(name: str) -> Operation:
    """A conversion to integers of numbers that fit; not of vectors with padding, which may hold anything."""

    def operation(writer: DataflowWriter) -> KnownValue | None:
        x = writer.number(FLOATS, integral=True)
        if x.type.is_padded:
            return None
        if name == "fptoui" and x.facts.low < 0:
            x = _intrinsic(writer, "fabs", [x], x.element, unary_facts("fabs", x))
        fitting = [e for e in INTEGERS if _fits(e, x.facts, unsigned=name == "fptoui")]
        element = writer.random.choice(fitting) if fitting else None
        facts = element and range_facts(element, x.facts.low, x.facts.high)
        return writer.instruction(f"{name} {{}} to {{}}", [x], element, facts) if element and facts else None

    return operation


def _fits(element: Type, facts: ValueFacts, *, unsigned: bool) -> bool:
    bits = width(element)
    return facts.high < (1 << bits) if unsigned else facts.bound < (1 << (bits - 1))


def _bitcast(writer: DataflowWriter) -> KnownValue | None:
    """A bitcast between integers and floats of the same width; never of NaN, whose bits are not determined."""
    x = writer.number((FLOAT, I32, DOUBLE, I64, HALF, BFLOAT, I16))
    if x.is_float and not (x.facts.integral and x.facts.zeros and not x.type.is_padded):
        return None
    others = [e for e in (*INTEGERS, *FLOATS) if e != x.element and width(e) == width(x.element)]
    element = writer.random.choice([e for e in others if isinstance(e, FloatType) != x.is_float] or others)
    # Integers may have the bits of a signalling NaN, which `pow` may or may not treat as a NaN: it refuses such zeros.
    facts = unknown_facts(element) if isinstance(element, IntType) else ValueFacts(zeros=x.is_float)
    return writer.instruction("bitcast {} to {}", [x], element, facts)


def _freeze(writer: DataflowWriter) -> KnownValue:
    x = writer.number(exact=False)
    return writer.instruction("freeze {}", [x], x.element, x.facts)


def _splat(writer: DataflowWriter) -> KnownValue:
    """A splat, as an operand for later statements."""
    x = writer.leaf(writer.random.choice((*FLOATS, *INTEGERS)))
    return writer.splat(x.type)


VECTORS: Final[dict[str, Operation]] = {
    **{name: _sum(name) for name in ("add", "sub", "mul")},
    **{name: _bitwise(name) for name in ("and", "or", "xor")},
    **{name: _shift(name) for name in ("shl", "lshr", "ashr")},
    **{name: _division(name) for name in ("udiv", "sdiv", "urem", "srem")},
    **{name: _float_sum(name) for name in ("fadd", "fsub")},
    **{name: _float_product(name) for name in ("fmul", "fdiv")},
    "fneg": _fneg,
    "frem": _remainder,
    "icmp": _icmp,
    "fcmp": _fcmp,
    "select": _select,
    **{name: _extension(name) for name in ("zext", "sext")},
    "trunc": _truncation,
    "fpext": _float_extension,
    "fptrunc": _float_truncation,
    **{name: _to_float(name) for name in ("sitofp", "uitofp")},
    **{name: _to_integer(name) for name in ("fptosi", "fptoui")},
    "bitcast": _bitcast,
    "freeze": _freeze,
    "splat": _splat,
    **INTRINSICS,
}
