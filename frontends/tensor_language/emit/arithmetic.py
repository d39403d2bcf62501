"""Arithmetic and comparisons: on scalars, uniform or varying, and on the flattened vectors of matrices.

The functions work on parts (LLVM values in register types) of any length, so that one table serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tlx.frontends.tensor_language.ast.mixed import ArithBinary, ArithUnary, Comparison
from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.intervals import of_binary
from tlx.frontends.tensor_language.emit.numbers import call, compare, filled, fits, narrowed, together
from tlx.frontends.tensor_language.emit.values import Linear, Number
from tlx.frontends.tensor_language.types import BOOL, ScalarType
from tlx.ir.types import I1, VectorType
from tlx.ir.values import ConstInt, Value, const_int

Parts = tuple[Value, ...]

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
        parts = (e.b.select(e.mask, rhs.value, filled(rhs.value, 1)),)  # machines stop at 1 / 0, asked for or not
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
    e.bind(i.result, Number(BOOL, (compared(e, i.op, lhs.type, lhs.parts, rhs.parts),)))


def binary(e: Emitter, op: str, type_: ScalarType, lhs: Parts, rhs: Parts) -> Parts:
    """`lhs op rhs` of one scalar type."""
    if type_.kind == "complex":
        return _COMPLEX[op](e, lhs, rhs)
    (a,), (b,) = lhs, rhs
    if (op, type_.kind) in _CHOICE:
        return (call(e, _CHOICE[op, type_.kind], [a, b]),)
    opcode = _FLOAT[op] if type_.kind == "float" else _INTEGER[op]
    return (narrowed(e, e.b.binary(opcode, a, b), type_),)


def unary(e: Emitter, op: str, type_: ScalarType, operand: Parts) -> Parts:
    """`op operand`."""
    if type_.kind == "complex":
        return _complex_unary(e, op, operand)
    (x,) = operand
    match op, type_.kind:
        case "not", _:
            return (e.b.binary("xor", x, filled(x, -1)),)
        case "abs", "int":
            return (call(e, "llvm.abs", [x], const_int(I1, 0)),)
        case "abs", _:
            return (call(e, "llvm.fabs", [x]),)
        case "neg", "int":
            return (e.b.binary("sub", filled(x, 0), x),)
        case _:
            return (negated(e, x),)


def unary_type(op: str, type_: ScalarType) -> ScalarType:
    """Type of `op` of a scalar of a type."""
    return type_.part if op in ("abs", "re", "im") else type_


def compared(e: Emitter, op: str, type_: ScalarType, lhs: Parts, rhs: Parts) -> Value:
    """`lhs op rhs` as i1."""
    integer, floating = _PREDICATES[op]
    if type_.kind in ("int", "bool"):
        return compare(e, "icmp", integer, lhs[0], rhs[0])
    found = [compare(e, "fcmp", floating, a, b) for a, b in zip(lhs, rhs, strict=True)]
    if len(found) == 1:
        return found[0]
    return e.b.binary("and" if op == "equal" else "or", found[0], found[1])


def negated(e: Emitter, x: Value) -> Value:
    """`fneg`."""
    return e.b.value("fneg", x.type, [x], f"fneg {x.typed}")


def any_lane(e: Emitter, mask: Value) -> Value:
    """Whether any lane of a mask is set."""
    if not isinstance(mask.type, VectorType):
        return mask
    return e.b.call_intrinsic("llvm.vector.reduce.or", [mask.type], I1, [mask])


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


def _add_parts(e: Emitter, lhs: Parts, rhs: Parts) -> Parts:
    return tuple(e.b.binary("fadd", a, b) for a, b in zip(lhs, rhs, strict=True))


def _sub_parts(e: Emitter, lhs: Parts, rhs: Parts) -> Parts:
    return tuple(e.b.binary("fsub", a, b) for a, b in zip(lhs, rhs, strict=True))


def _multiply(e: Emitter, lhs: Parts, rhs: Parts) -> Parts:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    (a, b), (c, d) = lhs, rhs
    f = e.b.binary
    return f("fsub", f("fmul", a, c), f("fmul", b, d)), f("fadd", f("fmul", a, d), f("fmul", b, c))


def _divide(e: Emitter, lhs: Parts, rhs: Parts) -> Parts:
    """Smith's method, which neither overflows nor underflows where the quotient does not.

    |c| >= |d|:  r = d / c,  t = c + d r,  ((a + b r) / t, (b - a r) / t);   else the same with the roles swapped.
    """
    (a, b), (c, d) = lhs, rhs
    f = e.b.binary
    wide = compare(e, "fcmp", "oge", call(e, "llvm.fabs", [c]), call(e, "llvm.fabs", [d]))
    large, small = e.b.select(wide, c, d), e.b.select(wide, d, c)
    first, second = e.b.select(wide, a, b), e.b.select(wide, b, a)
    ratio = f("fdiv", small, large)
    scale = f("fadd", large, f("fmul", small, ratio))
    real = f("fdiv", f("fadd", first, f("fmul", second, ratio)), scale)
    difference = f("fdiv", f("fsub", second, f("fmul", first, ratio)), scale)
    return real, e.b.select(wide, difference, negated(e, difference))


def _complex_unary(e: Emitter, op: str, operand: Parts) -> Parts:
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


def _hypot(e: Emitter, x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2) without overflow: m sqrt(1 + (n/m)^2) for m >= n; infinite if a part is, else NaN if one is."""
    a, b = call(e, "llvm.fabs", [x]), call(e, "llvm.fabs", [y])
    swap = compare(e, "fcmp", "olt", a, b)
    large, small = e.b.select(swap, b, a), e.b.select(swap, a, b)
    zero, one, infinity = filled(a, 0.0), filled(a, 1.0), filled(a, float("inf"))
    ratio = e.b.binary("fdiv", small, large)
    root = call(e, "llvm.sqrt", [e.b.binary("fadd", one, e.b.binary("fmul", ratio, ratio))])
    length = e.b.binary("fmul", large, root)
    length = e.b.select(compare(e, "fcmp", "oeq", large, zero), e.b.binary("fadd", large, small), length)
    infinite = e.b.binary("or", compare(e, "fcmp", "oeq", a, infinity), compare(e, "fcmp", "oeq", b, infinity))
    return e.b.select(infinite, infinity, length)


_COMPLEX: Final[dict[str, Callable[[Emitter, Parts, Parts], Parts]]] = {
    "add": _add_parts,
    "sub": _sub_parts,
    "mul": _multiply,
    "div": _divide,
}

RULES: Final = {Comparison: comparison}
