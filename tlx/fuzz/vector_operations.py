"""Ordinary LLVM instructions on flattened vectors as statements of dataflow functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tlx.fuzz.arrays import EXACT
from tlx.fuzz.dataflow import FLOATS, INTEGERS, Dataflow
from tlx.fuzz.flows import Facts, Flow, range_of, ranged, unknown
from tlx.fuzz.intrinsic_operations import INTRINSICS
from tlx.fuzz.operation import Operation
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, I16, I32, I64, FloatType, Type

_INT_PREDICATES: Final = ("slt", "eq", "ne", "sgt", "sle", "sge", "ult", "ugt", "ule", "uge")
_FLOAT_PREDICATES: Final = tuple("olt oeq one ogt ole oge ord uno ueq une ult ule ugt uge true false".split())
_WIDTH: Final[dict[Type, int]] = {I1: 1, I8: 8, I16: 16, I32: 32, I64: 64, HALF: 16, BFLOAT: 16, FLOAT: 32, DOUBLE: 64}


def width(element: Type) -> int:
    """Bits of an element."""
    return _WIDTH[element]


# Integers ----------------------------------------------------------------------------------------------------------


def _integers(flow: Dataflow) -> tuple[Flow, Flow]:
    x = flow.number(INTEGERS)
    return x, flow.partner(x)


def _sum(name: str) -> Operation:
    """`add sub mul`, with `nsw` and `nuw` where nothing wraps."""

    def operation(flow: Dataflow) -> Flow:
        x, y = _integers(flow)
        low, high = range_of(name, x.facts, y.facts)
        facts = ranged(x.element, low, high)
        fits = facts == Facts(low, high)
        flags = " nsw" if fits and flow.chance(0.5) else ""
        flags += " nuw" if fits and min(low, x.facts.low, y.facts.low) >= 0 and flow.chance(0.5) else ""
        return flow.instruction(f"{name}{flags} {{}}, {{}}", [x, y], x.element, facts)

    return operation


def _bitwise(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow:
        if flow.chance(0.2):
            mask = flow.mask()
            return flow.instruction(f"{name} {{}}, {{}}", [mask, flow.partner(mask)], I1, unknown(I1))
        x, y = _integers(flow)
        facts = unknown(x.element)
        if name == "and" and min(x.facts.low, y.facts.low) >= 0:
            facts = Facts(0, min(x.facts.high, y.facts.high))
        return flow.instruction(f"{name} {{}}, {{}}", [x, y], x.element, facts)

    return operation


def _guarded(flow: Dataflow, name: str, x: Flow, number: int) -> Flow:
    """An instruction with a constant, splat by instructions: `and` to make shift amounts and divisors right."""
    type_ = x.type.vector
    start = flow.fresh("i")
    flow.line(f"{start} = insertelement {type_} undef, {x.element} {number}, i32 0")
    splat = flow.let(f"shufflevector {type_} {start}, {type_} undef, <{x.type.count} x i32> zeroinitializer", x.type)
    facts = Facts(0, number) if name == "and" else Facts(1, max(x.facts.high, 0) | number)
    return flow.instruction(f"{name} {{}}, {{}}", [x, Flow(splat, Facts(number, number))], x.element, facts)


def _shift(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow:
        x, y = _integers(flow)
        amount = _guarded(flow, "and", y, width(x.element) - 1)
        return flow.instruction(f"{name} {{}}, {{}}", [x, amount], x.element, unknown(x.element))

    return operation


def _division(name: str) -> Operation:
    """The divisor is positive: nothing is divided by zero, and no smallest number by -1."""

    def operation(flow: Dataflow) -> Flow:
        x, y = _integers(flow)
        largest = (1 << (width(x.element) - 1)) - 1
        divisor = _guarded(flow, "or", _guarded(flow, "and", y, largest), 1)
        return flow.instruction(f"{name} {{}}, {{}}", [x, divisor], x.element, unknown(x.element))

    return operation


# Floats ------------------------------------------------------------------------------------------------------------


def _float_sum(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow:
        x = flow.number(FLOATS)
        y = flow.partner(x)
        low, high = range_of(name[1:], x.facts, y.facts)
        zeros = x.facts.zeros and y.facts.zeros
        integral = x.facts.integral and y.facts.integral
        facts = ranged(x.element, low, high, zeros=zeros) if integral else Facts(zeros=zeros)
        return flow.instruction(f"{name} {{}}, {{}}", [x, y], x.element, facts)

    return operation


def _float_product(name: str) -> Operation:
    """`fmul`, `fdiv`: relative errors add up."""

    def operation(flow: Dataflow) -> Flow:
        x = flow.number(FLOATS, exact=False)
        y = flow.partner(x, exact=x.facts.is_exact)
        zeros = x.facts.zeros and y.facts.zeros
        loose = not (x.facts.is_exact and y.facts.is_exact)
        if (name == "fdiv" and not zeros) or (loose and not _is_moderate(x, y)):
            return _negated(flow, x)
        low, high = range_of("mul", x.facts, y.facts)
        facts = Facts(zeros=zeros)
        if name == "fmul" and x.facts.integral and y.facts.integral:
            facts = ranged(x.element, low, high, zeros=zeros)
        if loose:
            facts = replace(facts, integral=False, ulps=x.facts.ulps + y.facts.ulps + 1)
        return flow.instruction(f"{name} {{}}, {{}}", [x, y], x.element, facts)

    return operation


def _is_moderate(x: Flow, y: Flow) -> bool:
    """Whether errors stay relative: no subnormal numbers come up."""
    return x.facts.is_moderate and y.facts.is_moderate


def _negated(flow: Dataflow, x: Flow) -> Flow:
    facts = replace(x.facts, low=-x.facts.high, high=-x.facts.low)
    return flow.instruction("fneg {}", [x], x.element, facts)


def _fneg(flow: Dataflow) -> Flow:
    return _negated(flow, flow.number(FLOATS, exact=False))


def _remainder(flow: Dataflow) -> Flow:
    x = flow.number(FLOATS)
    return flow.instruction("frem {}, {}", [x, flow.partner(x)], x.element, Facts(zeros=x.facts.zeros))


# Comparisons and choices -------------------------------------------------------------------------------------------


def _icmp(flow: Dataflow) -> Flow:
    x, y = _integers(flow)
    return flow.instruction(f"icmp {flow.random.choice(_INT_PREDICATES)} {{}}, {{}}", [x, y], I1, unknown(I1))


def _fcmp(flow: Dataflow) -> Flow:
    x = flow.number(FLOATS)
    predicate = flow.random.choice(_FLOAT_PREDICATES)
    return flow.instruction(f"fcmp {predicate} {{}}, {{}}", [x, flow.partner(x)], I1, unknown(I1))


def _select(flow: Dataflow) -> Flow:
    """By a mask, or by a scalar condition from memory."""
    if flow.chance(0.25):
        x = flow.number(exact=False)
        y = flow.partner(x, exact=False)
        return _chosen(flow, f"i1 {flow.condition()}", x, y)
    mask = flow.mask()
    x = flow.number_like(mask)
    y = flow.partner(x, exact=False)
    return _chosen(flow, mask.vector.typed, x, y)


def _chosen(flow: Dataflow, condition: str, x: Flow, y: Flow) -> Flow:
    vector = flow.let(f"select {condition}, {x.vector.typed}, {y.vector.typed}", x.type)
    return Flow(vector, x.facts.joined(y.facts))


# Conversions -------------------------------------------------------------------------------------------------------


def _extension(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow | None:
        x = flow.mask() if flow.chance(0.25) else flow.number((I8, I16, I32))
        wider = [e for e in INTEGERS if width(e) > width(x.element)]
        element = flow.random.choice(wider)
        low, high = x.facts.low, x.facts.high
        if name == "zext" and low < 0:
            low, high = 0, (1 << width(x.element)) - 1
        return flow.instruction(f"{name} {{}} to {{}}", [x], element, Facts(low, high))

    return operation


def _truncation(flow: Dataflow) -> Flow:
    x = flow.number((I32, I16, I64))
    element = flow.random.choice([e for e in (I8, I16, I32, I1) if width(e) < width(x.element)])
    facts = ranged(element, x.facts.low, x.facts.high) if element != I1 else unknown(I1)
    return flow.instruction("trunc {} to {}", [x], element, facts)


def _float_extension(flow: Dataflow) -> Flow:
    x = flow.number((FLOAT, HALF, BFLOAT))
    element = flow.random.choice([e for e in (FLOAT, DOUBLE) if width(e) > width(x.element)])
    return flow.instruction("fpext {} to {}", [x], element, x.facts)


def _float_truncation(flow: Dataflow) -> Flow:
    x = flow.number((DOUBLE, FLOAT))
    element = flow.random.choice([e for e in (HALF, BFLOAT, FLOAT) if width(e) < width(x.element)])
    facts = Facts(zeros=x.facts.zeros)
    if x.facts.integral:
        facts = ranged(element, x.facts.low, x.facts.high, zeros=x.facts.zeros)
    return flow.instruction("fptrunc {} to {}", [x], element, facts)


def _to_float(name: str) -> Operation:
    """Where a number is rounded, it is rounded once: not to half or bfloat by way of float."""

    def operation(flow: Dataflow) -> Flow | None:
        x = flow.number(INTEGERS)
        low, high = x.facts.low, x.facts.high
        if name == "uitofp" and low < 0:
            low, high = 0, (1 << width(x.element)) - 1
        narrow = max(abs(low), abs(high)) < EXACT[FLOAT]
        element = flow.random.choice([FLOAT, DOUBLE, HALF, BFLOAT] if narrow else [FLOAT, DOUBLE])
        return flow.instruction(f"{name} {{}} to {{}}", [x], element, ranged(element, low, high))

    return operation


def _to_integer(name: str) -> Operation:
    """Numbers must fit: what is padding may be none, so that there is none."""

    def operation(flow: Dataflow) -> Flow | None:
        x = flow.number(FLOATS, integral=True)
        if x.type.is_padded or (name == "fptoui" and x.facts.low < 0):
            return None
        fitting = [e for e in INTEGERS if _fits(e, x.facts, unsigned=name == "fptoui")]
        element = flow.random.choice(fitting) if fitting else None
        facts = element and ranged(element, x.facts.low, x.facts.high)
        return flow.instruction(f"{name} {{}} to {{}}", [x], element, facts) if element and facts else None

    return operation


def _fits(element: Type, facts: Facts, *, unsigned: bool) -> bool:
    bits = width(element)
    return facts.high < (1 << bits) if unsigned else facts.bound < (1 << (bits - 1))


def _bitcast(flow: Dataflow) -> Flow | None:
    """Between integers and floats of the same width; no NaN goes to integers, as its bits are not determined."""
    x = flow.number((FLOAT, I32, DOUBLE, I64, HALF, BFLOAT, I16))
    if x.is_float and not (x.facts.integral and x.facts.zeros and not x.type.is_padded):
        return None
    others = [e for e in (*INTEGERS, *FLOATS) if e != x.element and width(e) == width(x.element)]
    element = flow.random.choice([e for e in others if isinstance(e, FloatType) != x.is_float] or others)
    return flow.instruction("bitcast {} to {}", [x], element, unknown(element))


def _freeze(flow: Dataflow) -> Flow:
    x = flow.number(exact=False)
    return flow.instruction("freeze {}", [x], x.element, x.facts)


def _splat(flow: Dataflow) -> Flow:
    """A scalar in every element, as an operand of what comes next."""
    x = flow.leaf(flow.random.choice((*FLOATS, *INTEGERS)))
    return flow.splat(x.type)


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
