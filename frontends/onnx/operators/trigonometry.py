"""Circular and hyperbolic functions and their inverses, in float32 by the polynomials of the Cephes library."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tlx.frontends.onnx.model import OnnxNode
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors

_FLOAT64: Final = "float64 is computed in float32"
_ATAN: Final = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
_ASIN: Final = (4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1)
_ASINH: Final = (2.0122003309e-2, -4.2699340972e-2, 7.4847586088e-2, -1.6666288134e-1)
_ATANH: Final = (1.81740078349e-1, 8.24370301058e-2, 1.46691431730e-1, 1.99782164500e-1, 3.33337300303e-1)
_ACOSH: Final = (1.7596881071e-3, -7.5272886713e-3, 2.6454905019e-2, -1.1784741703e-1, 1.4142135263)


@operator("Tan")
def tan(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`sin(x) / cos(x)`."""
    _ = node
    return t.divide(t.unary("sin", x), t.unary("cos", x))


@operator("Sinh", "Cosh")
def sinh(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`(exp(x) - exp(-x)) / 2`, or the sum; near 0 `sinh(x) = x + x^3 / 6 + x^5 / 120 + x^7 / 5040`."""
    up, down = t.unary("exp", x), t.unary("exp", t.unary("negative", x))
    if node.operator == "Cosh":
        return t.multiply(t.add(up, down), 0.5)
    square = t.multiply(x, x)
    near = t.multiply(x, _horner(t, square, (1 / 362880, 1 / 5040, 1 / 120, 1 / 6, 1.0)))
    return t.where(t.compare("lt", t.unary("abs", x), 1.0), near, t.multiply(t.subtract(up, down), 0.5))


def _horner(t: Tensors, x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """A polynomial, the highest coefficient first."""
    result: Tensor = t.add(t.multiply(x, coefficients[0]), coefficients[1])
    for coefficient in coefficients[2:]:
        result = t.add(t.multiply(result, x), coefficient)
    return result


def _odd(t: Tensors, x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """An odd polynomial: `x + x^3 P(x^2)`."""
    square = t.multiply(x, x)
    return t.add(x, t.multiply(t.multiply(x, square), _horner(t, square, coefficients)))


def _signed_like(t: Tensors, magnitude: Tensor, x: Tensor) -> Tensor:
    return t.where(t.compare("lt", x, 0), t.unary("negative", magnitude), magnitude)


@operator("Atan", note=_FLOAT64)
def atan(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The angle, reduced to below pi / 8."""
    _ = node
    a = t.unary("abs", t.convert(x, np.float32))
    is_large, is_middle = t.compare("gt", a, math.tan(3 * math.pi / 8)), t.compare("gt", a, math.tan(math.pi / 8))
    middle = t.divide(t.subtract(a, 1), t.add(a, 1))
    reduced = t.where(is_large, t.divide(-1, a), t.where(is_middle, middle, a))
    half, quarter, zero = (np.asarray(angle, np.float32) for angle in (math.pi / 2, math.pi / 4, 0))
    offset = t.where(is_large, half, t.where(is_middle, quarter, zero))
    return t.convert(_signed_like(t, t.add(offset, _odd(t, reduced, _ATAN)), x), x.dtype)


def _asin(t: Tensors, a: Tensor) -> tuple[Tensor, Tensor]:
    """For `a >= 0`: whether it is above 1/2; then `asin(sqrt((1 - a) / 2))`, else `asin(a)`."""
    is_large = t.compare("gt", a, 0.5)
    root = t.unary("sqrt", t.multiply(t.subtract(1, a), 0.5))
    return is_large, _odd(t, t.where(is_large, root, a), _ASIN)


@operator("Asin", note=_FLOAT64)
def asin(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The angle; above 1/2 by that of `sqrt((1 - x) / 2)`."""
    _ = node
    is_large, small = _asin(t, t.unary("abs", t.convert(x, np.float32)))
    angle = t.where(is_large, t.subtract(math.pi / 2, t.multiply(small, 2)), small)
    return t.convert(_signed_like(t, angle, x), x.dtype)


@operator("Acos", note=_FLOAT64)
def acos(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The angle, above 1/2 `2 asin(sqrt((1 - x) / 2))`, below -1/2 its mirror image."""
    _ = node
    wide = t.convert(x, np.float32)
    is_large, small = _asin(t, t.unary("abs", wide))
    is_negative = t.compare("lt", wide, 0)
    outer = t.multiply(small, 2)
    far = t.where(is_negative, t.subtract(math.pi, outer), outer)
    near = t.subtract(math.pi / 2, t.where(is_negative, t.unary("negative", small), small))
    return t.convert(t.where(is_large, far, near), x.dtype)


@operator("Asinh", note=_FLOAT64)
def asinh(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`log(|x| + sqrt(x^2 + 1))`."""
    _ = node
    a = t.unary("abs", t.convert(x, np.float32))
    far = t.unary("log", t.add(a, t.unary("sqrt", t.add(t.multiply(a, a), 1))))
    huge = t.add(t.unary("log", a), math.log(2))
    result = t.where(t.compare("lt", a, 0.5), _odd(t, a, _ASINH), t.where(t.compare("gt", a, 1e6), huge, far))
    return t.convert(_signed_like(t, result, x), x.dtype)


@operator("Acosh", note=_FLOAT64)
def acosh(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`log(x + sqrt(x^2 - 1))`."""
    _ = node
    wide = t.convert(x, np.float32)
    above = t.subtract(wide, 1)
    near = t.multiply(t.unary("sqrt", above), _horner(t, above, _ACOSH))
    far = t.unary("log", t.add(wide, t.unary("sqrt", t.subtract(t.multiply(wide, wide), 1))))
    huge = t.add(t.unary("log", wide), math.log(2))
    result = t.where(t.compare("lt", above, 0.5), near, t.where(t.compare("gt", wide, 1e6), huge, far))
    return t.convert(result, x.dtype)


@operator("Atanh", note=_FLOAT64)
def atanh(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`log((1 + x) / (1 - x)) / 2`."""
    _ = node
    wide = t.convert(x, np.float32)
    far = t.multiply(t.unary("log", t.divide(t.add(1, wide), t.subtract(1, wide))), 0.5)
    return t.convert(t.where(t.compare("lt", t.unary("abs", wide), 0.5), _odd(t, wide, _ATANH), far), x.dtype)
