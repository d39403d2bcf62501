"""Operations that consist of others: softmax, normalisation, activations, pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
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
        """`1 - erf(x)`, with a small relative error everywhere; subnormal results may be 0.

        Within 4 ulp; that of bfloat within 0.53 ulp.
        """
        value = self._value("erfc", x)
        if not is_float(value.dtype):
            self._fail("erfc", f"the operand has type {value.dtype.name}, not a float: convert it first")
        wide = self._accumulated(value)
        accuracy = replace(_accuracy_of_factor(value), no_subnormals=True)
        return self._result(self._function("erfc", wide, accuracy), value.dtype)

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
