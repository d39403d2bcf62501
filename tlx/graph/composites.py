"""Operations that consist of others: softmax, normalisation, activations, pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tlx.graph.contraction.convolution import Convolutions
from tlx.graph.reductions import Axes
from tlx.graph.value import DType, Operand, Value
from tlx.intrinsics.numpy_types import is_float
from tlx.lower.operations import FULL_ACCURACY, Accuracy, ElementwiseOp

_ERF_LIMIT: Final = 4.0  # where erf rounds to 1 in float
_ERF_P: Final = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_Q: Final = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
_ERFC_SHIFT: Final = 1.625
_ERFC: Final = tuple(
    map(
        float.fromhex,
        """
        -0x1.ea0d12p+3 0x1.e17bb2p+5 -0x1.8dd9cap+6 0x1.588966p+6 -0x1.3167cap+5 0x1.aef782p+2
        -0x1.a6ee2cp+0 0x1.37fcf8p+0 0x1.320b14p+0 0x1.d5a84ep-1 0x1.20dc58p-1
        """.split(),
    )
)
"""`exp(a^2) erfc(a) / r` as a polynomial in `r = 1 / (a + _ERFC_SHIFT)`: with it, erfc has an error of 2^-25."""
_SHORT_ERFC: Final = tuple(
    map(
        float.fromhex,
        """-0x1.83020ap-25 0x1.35b988p-19 -0x1.b43b6cp-15 0x1.65e784p-11 -0x1.7f2c7cp-8 0x1.1ddbep-5 -0x1.39694ep-3
        -0x1.d59634p-1 -0x1.a0c004p+0""".split(),
    )
)
"""`log2(erfc(a)) / a` as a polynomial in a: with it, erfc has an error of 2^-14.3 at most."""
_ERFC_LEAST: Final = 2.0**-60  # added to a^2, which may be subnormal
_ERFC_LIMIT: Final = float.fromhex("0x1.2639bep+3")  # above it, erfc is subnormal as a float


class Composites(Convolutions):
    """Building blocks of models; half and bfloat are computed in float."""

    def softmax(self, x: Operand, axis: int = -1, *, reassociated: bool = False) -> Value:
        """`exp(x) / sum(exp(x))` along a dimension, without overflow.

        Args:
            x: A tensor.
            axis: The dimension.
            reassociated: Whether the division may follow a product of the result, as in attention on a GPU.
        """
        value = self._value("softmax", x)
        wide = self._accumulated(value)
        along = self._axis("softmax", axis, value.rank)
        powers = self.exp(self.subtract(wide, self.max(wide, along, keep=True)))
        operands = self._common_type("softmax", powers, self.sum(powers, along, keep=True))
        division = ElementwiseOp("fdiv", ("reassoc",) if reassociated else ())
        return self.convert(self._elementwise("softmax", division, operands, wide.dtype), value.dtype)

    def layer_norm(
        self,
        x: Operand,
        scale: Operand | None = None,
        shift: Operand | None = None,
        axes: Axes = -1,
        epsilon: float = 1e-5,
    ) -> Value:
        """`(x - mean) / sqrt(variance + epsilon) * scale + shift`, mean and variance over some dimensions."""
        value = self._value("layer_norm", x)
        wide = self._accumulated(value)
        centred = self.subtract(wide, self.mean(wide, axes, keep=True))
        variance = self.mean(self.multiply(centred, centred), axes, keep=True)
        result = self.multiply(centred, self.unary("rsqrt", self.add(variance, epsilon)))
        for operate, operand in ((self.multiply, scale), (self.add, shift)):
            if operand is not None:
                result = operate(result, self.convert(self._value("layer_norm", operand, wide.dtype), wide.dtype))
        return self.convert(result, value.dtype)

    def gelu(self, x: Operand) -> Value:
        """`x / 2 * (1 + tanh(u))`, `u = sqrt(2 / pi) * (x + 0.044715 x^3)`: GELU in its usual approximation.

        It is computed as `x * sigmoid(2 u)`, in which nothing cancels. That of bfloat is within 0.53 ulp.
        """
        value = self._value("gelu", x)
        wide = self._accumulated(value)
        scale = math.sqrt(8 / math.pi)
        doubled = self.multiply(wide, self.multiply_add(self.multiply(wide, wide), 0.044715 * scale, scale))
        factor = self._function("sigmoid", doubled, _accuracy_of_factor(value))
        return self._result(self.multiply(wide, factor), value.dtype)

    def erf(self, x: Operand) -> Value:
        """The error function of float, half and bfloat, within 4 ulp: `x P(x^2) / Q(x^2)`, as in Eigen and XLA."""
        value = self._value("erf", x)
        if not is_float(value.dtype) or value.dtype.itemsize > 4:
            self._fail("erf", f"not defined for {value.dtype.name}: convert the operand to float32")
        wide = self.clamp(-_ERF_LIMIT, self._accumulated(value), _ERF_LIMIT)
        square = self.multiply(wide, wide)
        ratio = self._ratio(self._polynomial(square, _ERF_P), self._polynomial(square, _ERF_Q))
        return self._result(self.multiply(wide, ratio), value.dtype)

    def erfc(self, x: Operand) -> Value:
        """`1 - erf(x)` of float, half and bfloat, relatively exact also where it is small; if subnormal, it may be 0.

        Of float and half, `exp(-x^2)` times a polynomial in `1 / (|x| + 1.625)`, within 6.4 ulp of float with fused
        multiply-adds, else within 100; `exp` of the rounded square is corrected by what was rounded. Of bfloat, a power
        of two whose exponent is a polynomial: within 0.53 ulp of bfloat.
        """
        value = self._value("erfc", x)
        if not is_float(value.dtype) or value.dtype.itemsize > 4:
            self._fail("erfc", f"not defined for {value.dtype.name}: convert the operand to float32")
        wide = self._accumulated(value)
        magnitude = self.unary("abs", wide)
        tail = self._short_tail(magnitude) if value.dtype.name == "bfloat16" else self._tail(magnitude)
        result = self.where(self.compare("lt", wide, 0.0), self.subtract(2.0, tail), tail)
        return self._result(result, value.dtype)

    def _short_tail(self, magnitude: Value) -> Value:
        """`erfc` of numbers from 0, with an error of 2^-14.2; from the limit on, 0 or subnormal."""
        operands = [self._polynomial(magnitude, _SHORT_ERFC), magnitude]
        logarithm = self._elementwise("multiply", ElementwiseOp("fmul", ("contract",)), operands, magnitude.dtype)
        return self._function("exp2", logarithm, Accuracy(short=True, no_subnormals=True))

    def _tail(self, magnitude: Value) -> Value:
        """`erfc` of numbers from 0 to the limit, with an error of some ulp."""
        a = self.minimum(magnitude, _ERFC_LIMIT)
        inverse = self._ratio(self.full(a.shape, 1.0, a.dtype), self.add(a, _ERFC_SHIFT))
        scaled = self.multiply(self._polynomial(inverse, _ERFC), inverse)
        exponent = self.multiply_add(self.unary("negative", a), a, -_ERFC_LEAST)
        rest = self.multiply_add(a, a, exponent)
        power = self._function("exp", exponent, Accuracy(normal=True))
        tail = self.multiply(self.multiply_add(self.unary("negative", scaled), rest, scaled), power)
        return self.where(self.compare("gt", magnitude, _ERFC_LIMIT), 0.0, tail)

    def _result(self, x: Value, dtype: DType) -> Value:
        """What a function computed, in the type of its result."""
        if x.dtype == dtype:
            return x
        return self._elementwise("convert", ElementwiseOp("fptrunc", is_function_result=True), [x], dtype)

    def _ratio(self, x: Value, y: Value) -> Value:
        """`x / y` of numbers that are not subnormal and whose quotient is not."""
        return self._elementwise("divide", ElementwiseOp("fdiv", ("arcp",)), [x, y], x.dtype)

    def _polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Horner's scheme, the highest coefficient first."""
        result = self.full(x.shape, coefficients[0], x.dtype)
        for coefficient in coefficients[1:]:
            result = self.multiply_add(result, x, coefficient)
        return result

    def silu(self, x: Operand) -> Value:
        """`x * sigmoid(x)`; that of bfloat is within 0.53 ulp."""
        value = self._value("silu", x)
        wide = self._accumulated(value)
        factor = self._function("sigmoid", wide, _accuracy_of_factor(value))
        return self._result(self.multiply(wide, factor), value.dtype)


def _accuracy_of_factor(value: Value) -> Accuracy:
    """The accuracy needed of a function in float whose result is only multiplied and then rounded to the type."""
    return Accuracy(short=True) if value.dtype.name == "bfloat16" else FULL_ACCURACY
