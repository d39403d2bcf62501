"""Arithmetic and comparisons: on scalars, uniform or varying, and on the flattened vectors of matrices.

The functions work on parts (LLVM values in register types) of any length, so that one table serves all of them. The
rules of operators, which choose between scalars and matrices, are in `matrix_arithmetic`.
"""

from __future__ import annotations

from typing import Final

from tlx.frontends.tensor_language.ast.mixed import ArithBinary, ArithUnary, Comparison
from tlx.frontends.tensor_language.emit.complex_numbers import complex_binary, complex_unary
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.intervals import of_binary
from tlx.frontends.tensor_language.emit.math_functions import applied
from tlx.frontends.tensor_language.emit.numbers import call, compare, fits, full_like, narrowed, negated, together
from tlx.frontends.tensor_language.emit.values import Linear, Number, Parts
from tlx.frontends.tensor_language.types import BOOL, ScalarType
from tlx.ir.types import I1, IntType, VectorType
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


def arith_binary(e: Emitter, i: ArithBinary) -> None:
    """`%r = add %a, %b : type` of scalars."""
    lhs, rhs = together(e, e.number(i.lhs), e.number(i.rhs))
    parts = rhs.parts
    if lhs.type.kind == "int" and i.op in ("div", "rem") and e.mask is not None and rhs.is_varying:
        parts = (e.b.select(e.mask, rhs.value, full_like(rhs.value, 1)),)  # the other lanes may hold poison
    result = binary(e, i.op, lhs.type, lhs.parts, parts)
    known = of_binary(i.op, lhs.type, lhs, rhs)
    e.bind(i.result, Number(lhs.type, result, _linear(e, i.op, lhs, rhs, exact=known is not None), known))


def arith_unary(e: Emitter, i: ArithUnary) -> None:
    """`%r = neg %a : type` of a scalar."""
    operand = e.number(i.operand)
    type_ = unary_type(i.op, operand.type)
    e.bind(i.result, Number(type_, unary(e, i.op, operand.type, operand.parts)))


def comparison(e: Emitter, i: Comparison) -> None:
    """`%r = less_than %a, %b : bool`."""
    lhs, rhs = together(e, e.number(i.lhs), e.number(i.rhs))
    e.bind(i.result, Number(BOOL, (_compared(e, i.op, lhs.type, lhs.parts, rhs.parts),)))


def binary(e: Emitter, op: str, type_: ScalarType, lhs: Parts, rhs: Parts) -> Parts:
    """`lhs op rhs` of one scalar type."""
    if type_.kind == "complex":
        return complex_binary(e, op, lhs, rhs)
    (a,), (b,) = lhs, rhs
    if (op, type_.kind) in _CHOICE:
        return (call(e, _CHOICE[op, type_.kind], [a, b]),)
    if op == "pow":
        return (narrowed(e, call(e, "llvm.pow", [a, b]), type_),)
    opcode = _FLOAT[op] if type_.kind == "float" else _INTEGER[op]
    if opcode in ("sdiv", "srem"):
        b = _harmless(e, a, b)
    elif opcode in ("shl", "ashr"):
        b = _within(e, b)
    return (narrowed(e, e.b.binary(opcode, a, b), type_),)


def _harmless(e: Emitter, dividend: Value, divisor: Value) -> Value:
    """A divisor that no machine stops at: 1 in place of 0, and in place of -1 where the quotient would wrap around."""
    if isinstance(divisor, ConstInt) and divisor.value not in (0, -1):
        return divisor
    is_zero = compare(e, "icmp", "eq", divisor, full_like(divisor, 0))
    is_lowest = compare(e, "icmp", "eq", dividend, full_like(divisor, -(1 << (_bits(divisor) - 1))))
    is_minus_one = compare(e, "icmp", "eq", divisor, full_like(divisor, -1))
    stops = e.b.binary("or", is_zero, e.b.binary("and", is_lowest, is_minus_one))
    return e.b.select(stops, full_like(divisor, 1), divisor)


def _within(e: Emitter, distance: Value) -> Value:
    """A distance to shift by, modulo the number of bits as in OpenCL C."""
    bits = _bits(distance)
    if isinstance(distance, ConstInt) and 0 <= distance.value < bits:
        return distance
    return e.b.binary("and", distance, full_like(distance, bits - 1))


def _bits(value: Value) -> int:
    """Bits of an integer, or of each of a vector of them."""
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
            return (narrowed(e, call(e, "llvm.sqrt", [x]), type_),)
        case "tanh", _:
            return (narrowed(e, applied(e, "tanh", x), type_),)
        case "neg", "int":
            return (e.b.binary("sub", full_like(x, 0), x),)
        case _:
            return (negated(e, x),)


def across(e: Emitter, op: str, type_: ScalarType, lanes: Value) -> Value:
    """`op` of all lanes, of which there are a power of two: of the upper and the lower half, until one is left."""
    assert isinstance(lanes.type, VectorType)
    count = lanes.type.count
    while count > 1:
        count //= 2
        low = e.b.shuffle(lanes, None, range(count))
        high = e.b.shuffle(lanes, None, range(count, 2 * count))
        (lanes,) = binary(e, op, type_, (low,), (high,))
    return e.b.extract_element(lanes, 0)


def unary_type(op: str, type_: ScalarType) -> ScalarType:
    """Type of `op` of a scalar of a type."""
    return type_.part if op in ("abs", "re", "im") else type_


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
    """How a sum, difference or multiple of linear numbers grows from lane to lane; `exact` if none wraps around."""
    if lhs.linear is None or rhs.linear is None:
        return None
    one, two = lhs.linear, rhs.linear
    exact = exact and one.exact and two.exact
    if op in ("add", "sub"):
        step = one.step + two.step if op == "add" else one.step - two.step
        base = e.b.binary(op, one.base, two.base)
        return Linear(base, step, exact or fits(e, base, step))
    if op == "mul":
        for factor, other in ((one, two), (two, one)):
            if factor.step == 0 and isinstance(factor.base, ConstInt):
                base, step = e.b.mul(other.base, factor.base), other.step * factor.base.value
                return Linear(base, step, exact or fits(e, base, step))
    return None


RULES: Final = {Comparison: comparison}
