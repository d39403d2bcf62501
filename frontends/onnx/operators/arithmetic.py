"""Arithmetic, comparisons, logic, rounding, conversion."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from tlx.frontends.onnx.model import ELEMENT_TYPES, OnnxNode, element_type, type_name
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors
from tlx.intrinsics.numpy_types import is_float

_BINARY: Final = {
    "Add": "add",
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "And": "and",
    "Or": "or",
    "Xor": "xor",
    "BitwiseAnd": "and",
    "BitwiseOr": "or",
    "BitwiseXor": "xor",
}
_RELATIONS: Final = {
    "Equal": "eq",
    "Less": "lt",
    "LessOrEqual": "le",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
}
_UNARY: Final = {
    "Abs": "abs",
    "Neg": "negative",
    "Sign": "sign",
    "Exp": "exp",
    "Log": "log",
    "Sqrt": "sqrt",
    "Sin": "sin",
    "Cos": "cos",
    "Floor": "floor",
    "Ceil": "ceil",
    "Round": "round",
    "Not": "invert",
    "BitwiseNot": "invert",
}
_VARIADIC: Final = {"Sum": "add", "Max": "maximum", "Min": "minimum"}
_SQUARED: Final = {2.0: 2, 3.0: 3, 4.0: 4}


@operator(*_BINARY)
def binary(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """Elementwise, with broadcasting."""
    return t.binary(_BINARY[node.operator], x, y)


@operator(*_RELATIONS)
def compare(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """Booleans."""
    return t.compare(_RELATIONS[node.operator], x, y)


@operator(*_UNARY)
def unary(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Functions of one operand."""
    name = _UNARY[node.operator]
    if name in ("exp", "log", "sqrt", "sin", "cos") and not is_float(x.dtype):
        t.fail(f"not defined for {x.dtype.name}")
    if name in ("floor", "ceil", "round") and not is_float(x.dtype):
        return x
    return t.unary(name, x)


@operator(*_VARIADIC)
def variadic(t: Tensors, node: OnnxNode, x: Tensor, *others: Tensor) -> Tensor:
    """One result of any number of operands."""
    return functools.reduce(functools.partial(t.binary, _VARIADIC[node.operator]), others, x)


@operator("Mean")
def mean(t: Tensors, node: OnnxNode, x: Tensor, *others: Tensor) -> Tensor:
    """`(x + y + ...) / n`."""
    _ = node
    return t.divide(functools.reduce(t.add, others, x), 1 + len(others))


@operator("Mod")
def mod(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """The remainder with the sign of the divisor, as Python's, or with `fmod` that of the dividend, as C's."""
    remainder = t.binary("remainder", x, y)
    if node.integer("fmod", 0) or x.dtype.kind == "u":
        return remainder
    differs = t.binary("xor", t.compare("lt", remainder, 0), t.compare("lt", y, 0))
    off = t.binary("and", t.compare("ne", remainder, 0), differs)
    return t.where(off, t.add(remainder, y), remainder)


@operator("BitShift")
def bit_shift(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """Shifts of unsigned integers."""
    direction = node.text("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise node.error(f"direction {direction!r} is neither LEFT nor RIGHT")
    return t.binary("shift_left" if direction == "LEFT" else "shift_right", x, y)


@operator("Pow")
def power(t: Tensors, node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    """`x ** y`; small integers and halves as exponents become products and roots."""
    _ = node
    if isinstance(y, np.ndarray) and y.size == 1 and len(y.shape) <= len(x.shape):
        exponent = float(y.reshape(-1)[0])
        if exponent in _SQUARED:
            return functools.reduce(t.multiply, [x] * _SQUARED[exponent])
        if exponent == 1:
            return x
        if exponent == 0.5 and is_float(x.dtype):
            return t.unary("sqrt", x)
        if exponent == -1 and is_float(x.dtype):
            return t.divide(1, x)
    if is_float(x.dtype):
        return t.binary("power", x, t.convert(y, x.dtype))
    wide = np.float64
    return t.convert(t.binary("power", t.convert(x, wide), t.convert(y, wide)), x.dtype)


@operator("Reciprocal")
def reciprocal(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`1 / x`."""
    _ = node
    return t.divide(1, x)


@operator("IsNaN")
def is_nan(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x != x`."""
    _ = node
    return t.compare("ne", x, x)


@operator("IsInf")
def is_inf(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Whether an element is infinite, of the signs that the attributes choose."""
    found: Tensor = np.zeros((), np.bool_)
    if node.integer("detect_positive", 1):
        found = t.compare("eq", x, float("inf"))
    if node.integer("detect_negative", 1):
        found = t.binary("or", t.compare("eq", x, float("-inf")), found)
    return t.broadcast(found, x.shape)


@operator("Where")
def where(t: Tensors, node: OnnxNode, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Selection."""
    _ = node
    return t.where(condition, x, y)


@operator("Clip")
def clip(t: Tensors, node: OnnxNode, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """`x`, but not below `low` and not above `high`; before version 11 they are attributes."""
    least: Any = node.get("min") if low is None else low
    most: Any = node.get("max") if high is None else high
    if least is not None:
        x = t.maximum(x, least)
    return x if most is None else t.minimum(x, most)


@operator("Cast", note="not to or from strings, floats of 4 bits, and other 8-bit floats")
def cast(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Conversion, rounded to nearest."""
    number = node.integer("to", 0)
    to = element_type(number)
    if to is None:
        raise node.error(f"conversion to {type_name(number)} is not supported: {', '.join(ELEMENT_TYPES.values())} are")
    return t.convert(x, to, saturates=bool(node.integer("saturate", 1)))


@operator("CastLike")
def cast_like(t: Tensors, node: OnnxNode, x: Tensor, like: Tensor) -> Tensor:
    """Conversion to the type of another tensor."""
    return t.convert(x, like.dtype, saturates=bool(node.integer("saturate", 1)))


@operator("Erf", note="float64 is computed in float32")
def erf(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The error function."""
    _ = node
    value = t.value(x)
    return (
        t.graph.erf(value)
        if x.dtype.itemsize <= 4
        else t.convert(t.graph.erf(t.graph.convert(value, np.float32)), x.dtype)
    )
