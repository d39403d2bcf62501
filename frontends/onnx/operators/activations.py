"""Activations, softmax, and functions composed of others."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tlx.frontends.onnx.model import OnnxNode
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors

_UNARY: Final = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh"}
_SELU_ALPHA: Final = 1.67326319217681884765625
_SELU_GAMMA: Final = 1.05070102214813232421875


@operator(*_UNARY)
def unary(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Functions that TLX has."""
    return t.unary(_UNARY[node.operator], x)


@operator("LeakyRelu")
def leaky_relu(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x`, times alpha where it is negative."""
    return t.where(t.compare("lt", x, 0), t.multiply(x, node.number("alpha", 0.01)), x)


@operator("PRelu")
def prelu(t: Tensors, node: OnnxNode, x: Tensor, slope: Tensor) -> Tensor:
    """`x`, times a slope where it is negative."""
    _ = node
    return t.where(t.compare("lt", x, 0), t.multiply(x, slope), x)


@operator("Elu")
def elu(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x`, where it is negative `alpha (exp(x) - 1)`."""
    return exponential(t, x, node.number("alpha", 1.0), 1.0)


@operator("Selu")
def selu(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`gamma x`, where it is negative `gamma alpha (exp(x) - 1)`."""
    return t.multiply(exponential(t, x, node.number("alpha", _SELU_ALPHA), 1.0), node.number("gamma", _SELU_GAMMA))


@operator("Celu")
def celu(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x`, where it is negative `alpha (exp(x / alpha) - 1)`."""
    alpha = node.number("alpha", 1.0)
    return exponential(t, x, alpha, alpha)


def exponential(t: Tensors, x: Tensor, alpha: float, scale: float) -> Tensor:
    """`x`, where it is negative `alpha (exp(x / scale) - 1)`."""
    negative = t.multiply(t.subtract(t.unary("exp", t.divide(x, scale) if scale != 1 else x), 1), alpha)
    return t.where(t.compare("lt", x, 0), negative, x)


@operator("ThresholdedRelu")
def thresholded_relu(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x` where it is greater than alpha, else 0."""
    return t.where(t.compare("gt", x, node.number("alpha", 1.0)), x, 0)


@operator("HardSigmoid")
def hard_sigmoid(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`alpha x + beta`, between 0 and 1."""
    line = t.add(t.multiply(x, node.number("alpha", 0.2)), node.number("beta", 0.5))
    return t.minimum(t.maximum(line, 0), 1)


@operator("HardSwish")
def hard_swish(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x` times `x / 6 + 1 / 2` between 0 and 1."""
    _ = node
    return t.multiply(x, t.minimum(t.maximum(t.add(t.multiply(x, 1 / 6), 0.5), 0), 1))


@operator("Softplus")
def softplus(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`log(exp(x) + 1)`, without overflow."""
    _ = node
    return _softplus(t, x)


def _softplus(t: Tensors, x: Tensor) -> Tensor:
    """`max(x, 0) + log(1 + exp(-|x|))`."""
    small = t.unary("exp", t.unary("negative", t.unary("abs", x)))
    return t.add(t.maximum(x, 0), t.unary("log", t.add(small, 1)))


@operator("Softsign")
def softsign(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x / (1 + |x|)`."""
    _ = node
    return t.divide(x, t.add(t.unary("abs", x), 1))


@operator("Mish")
def mish(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x tanh(softplus(x))`."""
    _ = node
    return t.multiply(x, t.unary("tanh", _softplus(t, x)))


@operator("Swish", "com.microsoft.QuickGelu")
def swish(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x sigmoid(alpha x)`."""
    alpha = node.number("alpha", 1.702 if node.operator == "QuickGelu" else 1.0)
    return t.multiply(x, t.unary("sigmoid", t.multiply(x, alpha)))


@operator("Gelu", "com.microsoft.Gelu")
def gelu(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x / 2 erfc(-x / sqrt(2))`, or its approximation by tanh."""
    value = t.value(x)
    if node.text("approximate", "none") == "tanh":
        return t.graph.gelu(value)
    wide = value if value.dtype.itemsize > 4 else t.convert(value, np.float32)
    doubled_share = t.graph.erfc(t.value(t.multiply(wide, -math.sqrt(0.5))))
    return t.convert(t.multiply(t.multiply(wide, 0.5), doubled_share), x.dtype)


@operator("com.microsoft.BiasGelu", "com.microsoft.FastGelu")
def biased_gelu(t: Tensors, node: OnnxNode, x: Tensor, bias: Tensor | None = None) -> Tensor:
    """Gelu of the sum with a bias; FastGelu is its approximation by tanh."""
    total = x if bias is None else t.add(x, bias)
    return t.graph.gelu(t.value(total)) if node.operator == "FastGelu" else gelu(t, node, total)


@operator("Shrink")
def shrink(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x` moved towards 0 by a bias, and 0 between `-lambd` and `lambd`."""
    bias, limit = node.number("bias", 0.0), node.number("lambd", 0.5)
    above = t.where(t.compare("gt", x, limit), t.subtract(x, bias), t.multiply(x, 0))
    return t.where(t.compare("lt", x, -limit), t.add(x, bias), above)


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Along an axis; before version 13 along that and all later ones."""
    axis = t.axis(node.integer("axis", -1 if node.opset >= 13 else 1), len(x.shape))
    return softmax_along(t, x, axis, node.opset, node.operator)


def softmax_along(t: Tensors, x: Tensor, axis: int, opset: int, name: str = "Softmax") -> Tensor:
    """`softmax`, or the operator of another name, of some version."""
    rank, shape = len(x.shape), x.shape
    if opset < 13 and axis < rank - 1:
        x = t.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
        axis = 1
    if not math.prod(shape):
        return np.empty(shape, x.dtype)
    value = t.value(x)
    if name == "Softmax":
        result = t.graph.softmax(value, axis)
    elif name == "Hardmax":
        index = t.graph.iota(value.shape, axis)
        first = t.graph.expand(t.graph.argmax(value, axis), axis)
        result = t.graph.convert(t.graph.equal(index, first), x.dtype)
    else:
        centred = t.graph.subtract(value, t.graph.max(value, axis, keep=True))
        total = t.graph.sum(t.graph.exp(centred), axis, keep=True)
        result = t.graph.subtract(centred, t.graph.log(total))
    return t.reshape(result, shape)
