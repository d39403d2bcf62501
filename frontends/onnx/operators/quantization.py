"""Quantization: `real = (stored - zero point) * scale`.

Products are of signed 8-bit integers: an unsigned one is one with its sign bit inverted and 128 less,

    sum (x - p) (y - q)  =  sum x y  -  p sum y  -  q sum x  +  n p q

and the last three terms are known, or vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tlx.frontends.onnx.model import Array, OnnxNode, element_type, type_name
from tlx.frontends.onnx.operators.activations import softmax_along
from tlx.frontends.onnx.operators.products import product
from tlx.frontends.onnx.operators.windows import average_pool, borders, convolved, spatial
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors
from tlx.intrinsics.numpy_types import is_float, small_float_of

_UNSIGNED: Final = np.dtype(np.uint8)


def _spread(t: Tensors, node: OnnxNode, v: Tensor, x: Tensor) -> Tensor:
    """A scale or zero point for all of a tensor, for each position of an axis, or for blocks along it."""
    rank = len(x.shape)
    if math.prod(v.shape) == 1:
        return t.reshape(v, ())
    axis = t.axis(node.integer("axis", 1), rank)
    if len(v.shape) == 1:
        return t.reshape(v, _at_axis(v, axis, rank))
    block = node.integer("block_size", 0) or -(-x.shape[axis] // max(v.shape[axis], 1))
    apart = t.expand(v, axis + 1)
    wide = [*v.shape[: axis + 1], block, *v.shape[axis + 1 :]]
    whole = t.reshape(t.broadcast(apart, wide), [e * block if d == axis else e for d, e in enumerate(v.shape)])
    return t.part(whole, axis, 0, x.shape[axis])


def _at_axis(v: Tensor, axis: int, rank: int) -> list[int]:
    return [v.shape[0] if d == axis else 1 for d in range(rank)]


@operator(
    "DequantizeLinear",
    "com.microsoft.DequantizeLinear",
    note="integers of 4 and 2 bits only as constants, no floats of 4 bits",
)
def dequantize_linear(t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """`(x - zero point) * scale`."""
    number = node.integer("output_dtype", 0)
    to = element_type(number) if number else scale.dtype
    if to is None:
        raise node.error(f"a result of type {type_name(number)} is not supported")
    factor = _spread(t, node, scale, x)
    if zero is not None and not (isinstance(zero, np.ndarray) and not zero.any()):
        exact = np.float32 if is_float(x.dtype) else np.int32
        x = t.subtract(t.convert(x, exact), t.convert(_spread(t, node, zero, x), exact))
    wide = t.convert(x, np.float32)
    return t.convert(t.multiply(wide, t.convert(factor, np.float32)), to)


@operator("QuantizeLinear", "com.microsoft.QuantizeLinear", note="to integers of 8 and 16 bits, and 8-bit floats")
def quantize_linear(t: Tensors, node: OnnxNode, x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """`x / scale`, rounded to even, plus the zero point, saturated; a float has no zero point but 0."""
    number = node.integer("output_dtype", 0)
    to = zero.dtype if zero is not None else element_type(number) if number else _UNSIGNED
    ratio = t.divide(t.convert(x, np.float32), t.convert(_spread(t, node, scale, x), np.float32))
    if to is not None and small_float_of(to) is not None:
        return t.convert(ratio, to, saturates=bool(node.integer("saturate", 1)))
    if to is None or to.kind not in "iu" or to.itemsize > 2 or (zero is not None and t.is_packed(zero)):
        raise node.error(f"a result of {type_name(number) if to is None else 'fewer bits than 8'} is not supported")
    return _saturated(t, t.unary("round", ratio), None if zero is None else _spread(t, node, zero, x), to)


def _saturated(t: Tensors, x: Tensor, zero: Tensor | None, to: np.dtype[Any]) -> Tensor:
    """A float of integer value plus a zero point, as the nearest integer of a type."""
    limits = np.iinfo(to)
    if zero is not None:
        x = t.add(x, t.convert(zero, np.float32))
    return t.convert(t.minimum(t.maximum(x, float(limits.min)), float(limits.max)), to)


def _quantized(t: Tensors, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A tensor in 8 bits of its own range, which includes 0, with scale and zero point."""
    axes = range(len(x.shape))
    most, least = t.maximum(t.reduce("max", x, axes), 0), t.minimum(t.reduce("min", x, axes), 0)
    range_ = t.subtract(most, least)
    # The scale of zeros is 1, as in onnxruntime.
    scale = t.where(t.compare("eq", range_, 0), 1, t.divide(range_, 255))
    zero = t.unary("round", t.minimum(t.maximum(t.divide(t.subtract(0, least), scale), 0), 255))
    return _saturated(t, t.unary("round", t.divide(x, scale)), zero, _UNSIGNED), scale, t.convert(zero, _UNSIGNED)


@operator("DynamicQuantizeLinear")
def dynamic_quantize_linear(t: Tensors, node: OnnxNode, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A tensor in 8 bits by its own range, with its scale and zero point."""
    _ = node
    return _quantized(t, x)


# Products of integers ----------------------------------------------------------------------------------------------


def _signed(t: Tensors, x: Tensor, zero: Tensor | None) -> tuple[Tensor, Tensor]:
    """A tensor of 8-bit integers as signed ones, and its zero point as int32."""
    if x.dtype.name not in ("int8", "uint8") or (zero is not None and zero.dtype != x.dtype):
        t.fail(f"operands of {x.dtype.name} must be 8-bit integers, and zero points of the same type")
    point: Tensor = np.zeros((), np.int32) if zero is None else t.convert(zero, np.int32)
    if x.dtype == np.int8:
        return x, point
    return t.convert(t.binary("xor", x, np.asarray(128, np.uint8)), np.int8), t.subtract(point, 128)


def _is_zero(x: Tensor) -> bool:
    return isinstance(x, np.ndarray) and not x.any()


def _matmul(t: Tensors, x: Tensor, y: Tensor, zeros: Sequence[Tensor | None]) -> Tensor:
    """The product of two tensors of 8-bit integers with zero points, in int32."""
    a, p = _signed(t, x, zeros[0])
    b, q = _signed(t, y, zeros[1])
    result: Tensor = t.graph.matmul(t.value(a), t.value(b), dtype=np.int32)
    rows, columns, inner = max(len(a.shape) - 1, 0), len(b.shape) - 1, a.shape[-1]
    p = t.expand(p, rows) if len(p.shape) == rows and rows else p  # a zero point for each row
    sums: list[Tensor] = []
    if not _is_zero(p):
        of_columns = _sum(t, b, max(columns - 1, 0))
        sums.append(t.multiply(p, of_columns))
    if not _is_zero(q):
        sums.append(t.multiply(_sum(t, a, rows), q))
    for term in sums:
        result = t.subtract(result, term)
    return result if len(sums) < 2 else t.add(result, t.multiply(t.multiply(p, q), inner))


def _sum(t: Tensors, x: Tensor, axis: int) -> Tensor:
    return t.reduce("sum", t.convert(x, np.int32), [axis], keep=True)


def _conv(t: Tensors, node: OnnxNode, x: Tensor, w: Tensor, zeros: Sequence[Tensor | None]) -> Tensor:
    """The convolution of two tensors of 8-bit integers with zero points, in int32."""
    a, p = _signed(t, x, zeros[0])
    b, q = _signed(t, w, zeros[1])
    if len(q.shape) == 1 and q.shape[0] > 1:
        q = t.reshape(q, (*q.shape, *[1] * (len(w.shape) - 1)))
    if not _is_zero(q) or not isinstance(b, np.ndarray):
        wide = [
            t.subtract(t.convert(v, np.int32), t.reshape(z, ()) if math.prod(z.shape) == 1 else z)
            for v, z in ((a, p), (b, q))
        ]
        return convolved(t, node, wide[0], wide[1], np.dtype(np.int32))
    result = convolved(t, node, a, b, np.dtype(np.int32))
    if _is_zero(p):
        return result
    return t.subtract(result, t.multiply(t.reshape(p, ()), _inside(node, a.shape, b)))


def _inside(node: OnnxNode, shape: Sequence[int], w: Array) -> Array:
    """For each position of a convolution's result, the sum of the weights that do not meet padding."""
    rank = len(shape) - 2
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    padding = borders(node, shape[2:], reach, strides)
    sums: Array = w.astype(np.int64).sum(axis=1)  # (O, kernel...)
    for d in range(rank):
        low, high = padding[d]
        size = (shape[2 + d] + low + high - reach[d]) // strides[d] + 1
        inside = np.zeros((size, w.shape[2 + d]), np.int64)
        for tap in range(w.shape[2 + d]):
            places = range(tap * dilations[d] - low, tap * dilations[d] - low + size * strides[d], strides[d])
            inside[:, tap] = [0 <= place < shape[2 + d] for place in places]
        sums = np.tensordot(sums, inside, ([1], [1]))  # the next kernel dimension comes first
    return sums.astype(np.int32)[None]


def quantized_product(t: Tensors, x: Tensor, w: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """The product with a quantized matrix, computed in 8 bits."""
    stored, factor, point = _quantized(t, x)
    sums = _matmul(t, stored, w, (point, None if zero is None else t.reshape(zero, zero.shape[-1:])))
    return t.multiply(t.convert(sums, np.float32), t.multiply(factor, scale))


@operator("com.microsoft.MatMulNBits", note="with constant weights, which are stored as floats")
def matmul_n_bits(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    w: Tensor,
    scale: Tensor,
    zero: Tensor | None = None,
    groups: Tensor | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """A product with a matrix of packed 2-, 4- or 8-bit integers, (N, blocks of K, bytes), with a scale per block."""
    depth, columns, bits = node.integer("K", 0), node.integer("N", 0), node.integer("bits", 4)
    size = node.integer("block_size", 0)
    if bits not in (2, 4, 8):
        raise node.error(f"{bits} bits are not supported: expected 2, 4 or 8")
    if min(depth, columns, size) < 1:
        raise node.error(f"K {depth}, N {columns} and block_size {size} must be positive")
    blocks = -(-depth // size)
    if math.prod(w.shape) != columns * blocks * (size * bits // 8) or math.prod(scale.shape) != columns * blocks:
        t.fail(f"weights {w.shape} and scales {scale.shape} do not fit {columns} columns of {blocks} blocks")
    stored = _unpacked(t.required_constant(w, "the matrix"), bits, (columns, blocks * size))
    points: Array = np.full((columns, blocks), 1 << bits - 1)
    if zero is not None:
        points = t.required_constant(zero, "the zero points")
        points = _unpacked(points, bits, (columns, blocks)) if points.dtype == _UNSIGNED else points
    block = np.arange(depth) // size
    if groups is not None and not np.array_equal(t.required_constant(groups, "g_idx").reshape(-1)[:depth], block):
        raise node.error("g_idx that reorders the rows is not supported: sort the rows by block")
    scales, points = (
        v.reshape(columns, blocks)[:, block].astype(np.float32)
        for v in (t.required_constant(scale, "the scales"), points)
    )
    weights = ((stored[:, :depth] - points) * scales).astype(x.dtype)
    result = product(t, x, np.ascontiguousarray(weights.T))
    return result if bias is None else t.add(result, bias)


def _unpacked(packed: Array, bits: int, shape: tuple[int, int]) -> Array:
    """Rows of unsigned integers, the first one in the low bits of a byte; each row begins at a byte."""
    rows = packed.reshape(shape[0], -1)
    apart = rows[:, :, None] >> np.arange(0, 8, bits, dtype=np.uint8) & ((1 << bits) - 1)
    return apart.reshape(shape[0], -1)[:, : shape[1]].astype(np.float32)


@operator("MatMulInteger")
def matmul_integer(
    t: Tensors, node: OnnxNode, x: Tensor, y: Tensor, x_zero: Tensor | None = None, y_zero: Tensor | None = None
) -> Tensor:
    """A product of 8-bit integers, in int32."""
    _ = node
    return _matmul(t, x, y, (x_zero, y_zero))


@operator("ConvInteger")
def conv_integer(
    t: Tensors, node: OnnxNode, x: Tensor, w: Tensor, x_zero: Tensor | None = None, w_zero: Tensor | None = None
) -> Tensor:
    """A convolution of 8-bit integers, in int32."""
    return _conv(t, node, x, w, (x_zero, w_zero))


def _requantized(t: Tensors, x: Tensor, scales: Sequence[Tensor], zero: Tensor, axis: int | None) -> Tensor:
    """Sums of products with the scale of the result: `x * (scale * scale / scale)`, plus a zero point."""
    first, second, result = (t.convert(s, np.float32) for s in scales)
    factor = t.divide(t.multiply(first, second), result)
    if math.prod(factor.shape) == 1:
        factor = t.reshape(factor, ())
    elif axis is not None:
        factor = t.reshape(factor, _at_axis(factor, axis, len(x.shape)))
    ratio = t.unary("round", t.multiply(t.convert(x, np.float32), factor))
    return _saturated(t, ratio, t.reshape(zero, ()) if math.prod(zero.shape) == 1 else zero, zero.dtype)


@operator("QLinearMatMul")
def qlinear_matmul(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    y: Tensor,
    y_scale: Tensor,
    y_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
) -> Tensor:
    """A product of quantized tensors, quantized."""
    _ = node
    return _requantized(t, _matmul(t, x, y, (x_zero, y_zero)), (x_scale, y_scale, scale), zero, None)


@operator("QLinearConv")
def qlinear_conv(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    x_scale: Tensor,
    x_zero: Tensor,
    w: Tensor,
    w_scale: Tensor,
    w_zero: Tensor,
    scale: Tensor,
    zero: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """A convolution of quantized tensors, quantized; the bias has the scale of the products."""
    sums = _conv(t, node, x, w, (x_zero, w_zero))
    if bias is not None:
        sums = t.add(sums, t.reshape(bias, _at_axis(bias, 1, len(x.shape))))
    return _requantized(t, sums, (x_scale, w_scale, scale), zero, 1)


# Operators of onnxruntime's quantizer: computed in float32, between `DequantizeLinear` and `QuantizeLinear` ---------


def _quantized_like(
    t: Tensors, node: OnnxNode, result: Tensor, x: Tensor, scale: Tensor, zero: Tensor | None
) -> Tensor:
    """`quantize_linear` to the type of the zero point, or that of an operand."""
    return quantize_linear(t, node, result, scale, np.zeros((), x.dtype) if zero is None else zero)


@operator("com.microsoft.QLinearAdd", "com.microsoft.QLinearMul")
def qlinear_binary(
    t: Tensors,
    node: OnnxNode,
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
    return _quantized_like(t, node, result, x, scale, zero)


@operator("com.microsoft.QLinearSigmoid", "com.microsoft.QLinearLeakyRelu")
def qlinear_unary(
    t: Tensors, node: OnnxNode, x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """A function of a quantized tensor, quantized."""
    wide = dequantize_linear(t, node, x, x_scale, x_zero)
    if node.operator.endswith("Sigmoid"):
        result = t.unary("sigmoid", wide)
    else:
        result = t.where(t.compare("ge", wide, 0), wide, t.multiply(wide, node.number("alpha", 0.01)))
    return _quantized_like(t, node, result, x, scale, zero)


@operator("com.microsoft.QLinearSoftmax")
def qlinear_softmax(
    t: Tensors, node: OnnxNode, x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """Softmax of a quantized tensor, quantized; `opset` says over which dimensions."""
    wide = dequantize_linear(t, node, x, x_scale, x_zero)
    axis = t.axis(node.integer("axis", -1), len(x.shape))
    result = softmax_along(t, wide, axis, node.integer("opset", 13))
    return _quantized_like(t, node, result, x, scale, zero)


@operator("com.microsoft.QLinearConcat")
def qlinear_concat(t: Tensors, node: OnnxNode, scale: Tensor, zero: Tensor, *operands: Tensor) -> Tensor:
    """Quantized tensors, each with scale and zero point, one after the other, quantized."""
    if not operands or len(operands) % 3:
        raise node.error("needs a scale and a zero point after each tensor")
    parts = [
        dequantize_linear(t, node, *tensor)
        for tensor in zip(operands[::3], operands[1::3], operands[2::3], strict=True)
    ]
    joined = t.concatenate(parts, t.axis(node.integer("axis", 0), len(parts[0].shape)))
    return quantize_linear(t, node, joined, scale, zero)


@operator(
    "com.microsoft.QLinearAveragePool",
    "com.microsoft.QLinearGlobalAveragePool",
    note="channels are the second dimension",
)
def qlinear_average_pool(
    t: Tensors, node: OnnxNode, x: Tensor, x_scale: Tensor, x_zero: Tensor, scale: Tensor, zero: Tensor | None = None
) -> Tensor:
    """Means of a quantized tensor, quantized."""
    if node.integer("channels_last", 0):
        raise node.error("channels_last=1 is not supported")
    wide = dequantize_linear(t, node, x, x_scale, x_zero)
    if node.operator.endswith("GlobalAveragePool"):
        mean: Tensor = t.graph.mean(t.value(wide), range(2, len(x.shape)), keep=True)
    else:
        mean = average_pool(t, node, wide)
    return _quantized_like(t, node, mean, x, scale, zero)


@operator("com.microsoft.QGemm")
def quantized_gemm(
    t: Tensors,
    node: OnnxNode,
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
    sums = _matmul(t, a, b, (x_zero, y_zero))
    if bias is not None:
        sums = t.add(sums, bias)
    x_scale = t.multiply(x_scale, node.number("alpha", 1.0))
    if scale is None or zero is None:
        return t.multiply(t.convert(sums, np.float32), t.multiply(x_scale, y_scale))
    return _requantized(t, sums, (x_scale, y_scale, scale), zero, None)
