"""Normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tlx.frontends.onnx.model import OnnxNode
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors


def _per_channel(t: Tensors, x: Tensor, rank: int) -> Tensor:
    """A number for each channel, of a tensor whose second dimension is the channels."""
    return t.reshape(x, (*x.shape, *[1] * (rank - 2)))


def _normalized(t: Tensors, x: Tensor, axes: Sequence[int], epsilon: float, *, centre: bool = True) -> Tensor:
    """`(x - mean) / sqrt(variance + epsilon)` over some dimensions; without centre, the mean counts as 0."""
    count = math.prod(x.shape[d] for d in axes)
    centred = t.subtract(x, t.divide(t.reduce("sum", x, axes, keep=True), count)) if centre else x
    variance = t.divide(t.reduce("sum", t.multiply(centred, centred), axes, keep=True), count)
    return t.multiply(centred, t.unary("rsqrt", t.add(variance, epsilon)))


@operator("BatchNormalization", note="as in inference")
def batch_normalization(
    t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor
) -> Tensor:
    """`x` scaled and shifted for each channel."""
    if node.integer("training_mode", 0) or len([name for name in node.outputs if name]) > 1:
        raise node.error("training is not supported")
    rank = len(x.shape)
    inverse = t.unary("rsqrt", t.add(variance, node.number("epsilon", 1e-5)))
    factor = t.multiply(t.convert(scale, inverse.dtype), inverse)
    offset = t.subtract(t.convert(shift, inverse.dtype), t.multiply(mean, factor))
    factor, offset = (t.convert(_per_channel(t, v, rank), x.dtype) for v in (factor, offset))
    return t.add(t.multiply(x, factor), offset)


@operator("InstanceNormalization")
def instance_normalization(t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Each channel of each sample normalized."""
    rank = len(x.shape)
    normal = _normalized(t, x, range(2, rank), node.number("epsilon", 1e-5))
    return t.add(t.multiply(normal, _per_channel(t, scale, rank)), _per_channel(t, shift, rank))


@operator("LayerNormalization", note="one output")
def layer_normalization(
    t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor, shift: Tensor | None = None
) -> tuple[Tensor, ...]:
    """The dimensions from an axis on normalized; with two further outputs, mean and inverse deviation."""
    axes = range(t.axis(node.integer("axis", -1), len(x.shape)), len(x.shape))
    wide = t.widened(x)
    count = math.prod(x.shape[d] for d in axes)
    mean = t.divide(t.reduce("sum", wide, axes, keep=True), count)
    centred = t.subtract(wide, mean)
    variance = t.divide(t.reduce("sum", t.multiply(centred, centred), axes, keep=True), count)
    inverse = t.unary("rsqrt", t.add(variance, node.number("epsilon", 1e-5)))
    result = t.multiply(t.convert(t.multiply(centred, inverse), x.dtype), scale)
    return (result if shift is None else t.add(result, shift), mean, inverse)


@operator("RMSNormalization")
def rms_normalization(t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor) -> Tensor:
    """The dimensions from an axis on divided by the root of their mean square."""
    axes = range(t.axis(node.integer("axis", -1), len(x.shape)), len(x.shape))
    normal = _normalized(t, t.widened(x), axes, node.number("epsilon", 1e-5), centre=False)
    return t.multiply(t.convert(normal, scale.dtype), scale)


@operator("SimplifiedLayerNormalization")
def simplified_layer_normalization(t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor) -> Tensor:
    """RMSNormalization in models that onnxruntime has optimized."""
    return rms_normalization(t, node, x, scale)


@operator("com.microsoft.SkipLayerNormalization")
def skip_layer_normalization(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    skip: Tensor,
    scale: Tensor,
    shift: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    """LayerNormalization of the sum of two tensors, and of a bias; the fourth output is the sum."""
    total = _sum(t, x, skip, bias)
    result, mean, inverse = layer_normalization(t, _with_epsilon(node), total, scale, shift)
    return result, mean, inverse, total


@operator("com.microsoft.SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(
    t: Tensors, node: OnnxNode, x: Tensor, skip: Tensor, scale: Tensor, bias: Tensor | None = None
) -> tuple[Tensor | None, ...]:
    """RMSNormalization of the sum of two tensors, and of a bias; the fourth output is the sum."""
    total = _sum(t, x, skip, bias)
    return rms_normalization(t, _with_epsilon(node), total, scale), None, None, total


def _sum(t: Tensors, x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
    total = t.add(x, skip)
    return total if bias is None else t.add(total, bias)


def _with_epsilon(node: OnnxNode) -> OnnxNode:
    """A node of onnxruntime's, whose epsilon is 1e-12 where it has none."""
    return replace(node, attributes={"epsilon": 1e-12, **node.attributes})


@operator("GroupNormalization")
def group_normalization(t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Groups of channels normalized."""
    groups, rank = node.integer("num_groups", 1), len(x.shape)
    if groups < 1 or x.shape[1] % groups:
        t.fail(f"{groups} groups do not divide {x.shape[1]} channels")
    apart = t.reshape(t.widened(x), (x.shape[0], groups, math.prod(x.shape[1:]) // groups))
    normal = t.convert(_normalized(t, apart, [2], node.number("epsilon", 1e-5)), x.dtype)
    if scale.shape == (x.shape[1],):
        result = t.reshape(normal, x.shape)
        return t.add(t.multiply(result, _per_channel(t, scale, rank)), _per_channel(t, shift, rank))
    per_group = [t.reshape(v, (groups, 1)) for v in (scale, shift)]
    return t.reshape(t.add(t.multiply(normal, per_group[0]), per_group[1]), x.shape)


@operator("MeanVarianceNormalization")
def mean_variance_normalization(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`(x - mean) / (deviation + 1e-9)`."""
    axes = t.axes(node.integers("axes") or [0, 2, 3], len(x.shape))
    count = math.prod(x.shape[d] for d in axes)
    mean = t.divide(t.reduce("sum", x, axes, keep=True), count)
    square = t.divide(t.reduce("sum", t.multiply(x, x), axes, keep=True), count)
    deviation = t.unary("sqrt", t.subtract(square, t.multiply(mean, mean)))
    return t.divide(t.subtract(x, mean), t.add(deviation, 1e-9))


@operator("LpNormalization")
def lp_normalization(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """`x` divided by its norm along an axis."""
    axis = t.axis(node.integer("axis", -1), len(x.shape))
    if node.integer("p", 2) == 1:
        norm = t.reduce("sum", t.unary("abs", x), [axis], keep=True)
    else:
        norm = t.unary("sqrt", t.reduce("sum", t.multiply(x, x), [axis], keep=True))
    return t.where(t.compare("eq", norm, 0), 0, t.divide(x, norm))


@operator("LRN")
def lrn(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Local response normalization: `x / (bias + alpha / size * sum of squares of neighbouring channels) ** beta`."""
    size = node.integer("size", 1)
    if size < 1:
        raise node.error(f"size {size} must be positive")
    squares, rank = t.value(t.multiply(x, x)), len(x.shape)
    before = (size - 1) // 2
    padding = [(0, 0), (before, size - 1 - before), *[(0, 0)] * (rank - 2)]
    window = [1, size, *[1] * (rank - 2)]
    total = t.graph.reduce_window("sum", squares, window, [1] * rank, padding)
    base = t.add(t.multiply(total, node.number("alpha", 1e-4) / size), node.number("bias", 1.0))
    exponent = t.multiply(t.unary("log", base), -node.number("beta", 0.75))
    return t.multiply(x, t.unary("exp", exponent))
