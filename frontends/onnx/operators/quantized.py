"""Operators of onnxruntime's quantizer: computed in float32, between `DequantizeLinear` and `QuantizeLinear`."""

from __future__ import annotations

from typing import Final

import numpy as np

from tlx.frontends.onnx.model import Node
from tlx.frontends.onnx.operators.activations import softmax_along
from tlx.frontends.onnx.operators.pooling import average_pool
from tlx.frontends.onnx.operators.quantization import dequantize_linear, integer_matmul, quantize_linear, requantized
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors

_CHANNELS_LAST: Final = "channels are the second dimension"


@operator("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def qlinear_binary(
    t: Tensors,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
) -> Tensor:
    """The sum or product of quantized tensors, quantized."""
    a, b = dequantize_linear(t, node, x, x_scale, x_zero), dequantize_linear(t, node, y, y_scale, y_zero)
    result = t.add(a, b) if node.operator.endswith("Add") else t.multiply(a, b)
    return quantize_linear(t, node, result, scale, zero)


@operator("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu")
def qlinear_unary(
    t: Tensors, node: Node, x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """A function of a quantized tensor, quantized."""
    wide = dequantize_linear(t, node, x, x_scale, x_zero)
    if node.operator.endswith("Sigmoid"):
        result = t.unary("sigmoid", wide)
    else:
        result = t.where(t.compare("ge", wide, 0), wide, t.multiply(wide, node.number("alpha", 0.01)))
    return quantize_linear(t, node, result, scale, zero)


@operator("com.microsoft.QLinearSoftmax")
def qlinear_softmax(
    t: Tensors, node: Node, x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """Softmax of a quantized tensor, quantized; `opset` says over which dimensions."""
    wide = dequantize_linear(t, node, x, x_scale, x_zero)
    axis = t.axis(node.integer("axis", -1), len(x.shape))
    return quantize_linear(t, node, softmax_along(t, wide, axis, node.integer("opset", 13)), scale, zero)


@operator("com.microsoft.QLinearConcat")
def qlinear_concat(t: Tensors, node: Node, scale: Tensor, zero: Tensor, *operands: Tensor) -> Tensor:
    """Quantized tensors, each with scale and zero point, one after the other, quantized."""
    if not operands or len(operands) % 3:
        raise node.error("needs a scale and a zero point after each tensor")
    parts = [
        dequantize_linear(t, node, *tensor)
        for tensor in zip(operands[::3], operands[1::3], operands[2::3], strict=True)
    ]
    joined = t.concatenate(parts, t.axis(node.integer("axis", 0), len(parts[0].shape)))
    return quantize_linear(t, node, joined, scale, zero)


@operator("com.microsoft.QLinearAveragePool", "com.microsoft.QLinearGlobalAveragePool", note=_CHANNELS_LAST)
def qlinear_average_pool(
    t: Tensors, node: Node, x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """Means of a quantized tensor, quantized."""
    if node.integer("channels_last", 0):
        raise node.error("channels_last=1 is not supported")
    wide = dequantize_linear(t, node, x, x_scale, x_zero)
    if node.operator.endswith("GlobalAveragePool"):
        mean: Tensor = t.graph.mean(t.value(wide), range(2, len(x.shape)), keep=True)
    else:
        mean = average_pool(t, node, wide)
    return quantize_linear(t, node, mean, scale, zero)


@operator("com.microsoft.QGemm")
def quantized_gemm(
    t: Tensors,
    node: Node,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    bias: Tensor | None = None,
    scale: Tensor | None = None,
    zero: Tensor | None = None,
) -> Tensor:
    """`alpha (x @ y + bias)` of quantized matrices; quantized, if there is a scale for that."""
    a, b = (t.transpose(v, (1, 0)) if node.integer(name, 0) else v for v, name in ((x, "transA"), (y, "transB")))
    sums = integer_matmul(t, a, b, (x_zero, y_zero))
    if bias is not None:
        sums = t.add(sums, bias)
    x_scale = t.multiply(x_scale, node.number("alpha", 1.0))
    if scale is None or zero is None:
        return t.multiply(t.convert(sums, np.float32), t.multiply(x_scale, y_scale))
    return requantized(t, sums, (x_scale, y_scale, scale), zero, None)
