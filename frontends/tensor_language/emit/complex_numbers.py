"""Arithmetic of complex numbers, given as a real and an imaginary part."""

from __future__ import annotations

from tlx.frontends.tensor_language.emit.emitter import Emitter
from tlx.frontends.tensor_language.emit.numbers import call, compare, full_like, negated
from tlx.frontends.tensor_language.emit.values import Parts
from tlx.ir.types import DOUBLE, VectorType
from tlx.ir.values import Value


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
    """Smith's method, on numbers scaled by powers of two such that sums do not overflow and divisors keep all bits.

    |c| >= |d|:  r = d / c,  t = c + d r,  ((a + b r) / t, (b - a r) / t);   else the same with the roles swapped.
    By 0 + 0i each part is divided by 0.
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
    """A power of two that takes very large and very small numbers away from the ends of their type."""
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
