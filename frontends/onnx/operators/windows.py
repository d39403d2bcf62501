"""Convolutions and pooling."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tlx.frontends.onnx.model import Array, OnnxNode
from tlx.frontends.onnx.operators.resize import interpolated
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors
from tlx.intrinsics.numpy_types import is_float

Borders = Sequence[tuple[int, int]]


def spatial(node: OnnxNode, name: str, rank: int, default: int = 1) -> list[int]:
    """An attribute that has a number for each spatial dimension."""
    numbers = node.integers(name)
    if numbers is None:
        return [default] * rank
    if len(numbers) != rank:
        raise node.error(f"attribute '{name}' must have {rank} numbers, not {len(numbers)}")
    if min(numbers, default=1) < (0 if name == "output_padding" else 1):
        raise node.error(f"attribute '{name}' must have positive numbers, not {numbers}")
    return numbers


def borders(
    node: OnnxNode, extents: Sequence[int], reach: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Padding of each spatial dimension, for windows that reach over some positions."""
    rank = len(extents)
    automatic = node.text("auto_pad", "NOTSET")
    if automatic in ("SAME_UPPER", "SAME_LOWER"):
        missing = [max(0, (-(-e // s) - 1) * s + r - e) for e, r, s in zip(extents, reach, strides, strict=True)]
        halves = [m // 2 if automatic == "SAME_UPPER" else m - m // 2 for m in missing]
        return [(half, m - half) for half, m in zip(halves, missing, strict=True)]
    if automatic not in ("NOTSET", "VALID", ""):
        raise node.error(f"auto_pad {automatic!r} is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    pads = node.integers("pads")
    if pads is None or automatic == "VALID":
        return [(0, 0)] * rank
    if len(pads) != 2 * rank:
        raise node.error(f"attribute 'pads' must have {2 * rank} numbers, not {len(pads)}")
    if min(pads, default=0) < 0:
        raise node.error(f"attribute 'pads' must not be negative: {pads}")
    return list(zip(pads[:rank], pads[rank:], strict=True))


def biased(t: Tensors, x: Tensor, bias: Tensor | None) -> Tensor:
    """A tensor with a number added to each channel."""
    return x if bias is None else t.add(x, t.reshape(bias, (*bias.shape, *[1] * (len(x.shape) - 2))))


@operator("Conv")
def conv(t: Tensors, node: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """Sums of products of windows."""
    return biased(t, convolved(t, node, t.rounded(x), t.rounded(w), x.dtype), bias)


def _spatial_rank(t: Tensors, x: Tensor, w: Tensor) -> int:
    """The number of spatial dimensions of an input and its kernel."""
    if len(x.shape) < 3 or len(w.shape) != len(x.shape):
        t.fail(f"input {x.shape} and kernel {w.shape} must have the same rank, at least 3")
    return len(x.shape) - 2


def convolved(t: Tensors, node: OnnxNode, x: Tensor, w: Tensor, dtype: np.dtype[np.generic]) -> Tensor:
    """The convolution without its bias, with sums of some type."""
    rank = _spatial_rank(t, x, w)
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    padding = borders(node, x.shape[2:], reach, strides)
    _check_output(t, x.shape[2:], reach, padding)
    groups = node.integer("group", 1)
    t.checked([x.shape[0], w.shape[0], *(e + a + b for e, (a, b) in zip(x.shape[2:], padding, strict=True))])
    return t.graph.convolution(
        t.value(x), t.value(w), strides, padding, kernel_dilation=dilations, groups=groups, dtype=dtype
    )


def _check_output(t: Tensors, extents: Sequence[int], reach: Sequence[int], padding: Sequence[tuple[int, int]]) -> None:
    for d, (e, r, (a, b)) in enumerate(zip(extents, reach, padding, strict=True)):
        if r > e + a + b:
            t.fail(f"the kernel spans {r} positions of spatial dimension {d}, which has {e + a + b}")


@operator("ConvTranspose")
def conv_transpose(t: Tensors, node: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    """The transpose of a convolution: a convolution of a dilated input with the kernel reversed."""
    rank = _spatial_rank(t, x, w)
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    extra = spatial(node, "output_padding", rank, 0)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilations, strict=True)]
    whole = [(e - 1) * s + r + o for e, s, r, o in zip(x.shape[2:], strides, reach, extra, strict=True)]
    groups = node.integer("group", 1)
    if groups < 1 or x.shape[1] % groups or x.shape[1] != w.shape[0]:
        t.fail(f"kernel {w.shape} in {groups} groups does not fit an input of {x.shape[1]} channels")
    crop = _cropped(node, x.shape[2:], strides, whole)
    # (C, O / groups, ...) -> (O, C / groups, ...), reversed
    inner, outer = x.shape[1] // groups, w.shape[1]
    apart = t.reshape(w, (groups, inner, outer, *w.shape[2:]))
    kernel = t.reshape(t.transpose(apart, (0, 2, 1, *range(3, 3 + rank))), (groups * outer, inner, *w.shape[2:]))
    last = [e - 1 for e in kernel.shape]
    kernel = t.slice(kernel, [0, 0, *last[2:]], [*kernel.shape[:2], *[-1] * rank], [1, 1, *[-1] * rank])
    padding = [(r - 1 - low, r - 1 - high + o) for r, (low, high), o in zip(reach, crop, extra, strict=True)]
    t.checked([x.shape[0], groups * outer, *whole])
    result = t.graph.convolution(
        t.value(t.rounded(x)),
        t.value(t.rounded(kernel)),
        1,
        padding,
        input_dilation=strides,
        kernel_dilation=dilations,
        groups=groups,
        dtype=x.dtype,
    )
    return biased(t, result, bias)


def _cropped(
    node: OnnxNode, extents: Sequence[int], strides: Sequence[int], whole: Sequence[int]
) -> list[tuple[int, int]]:
    """How much of the whole result is cut off before and after each dimension."""
    shape = node.integers("output_shape")
    automatic = node.text("auto_pad", "NOTSET")
    if shape is None and automatic in ("SAME_UPPER", "SAME_LOWER"):
        shape = [e * s for e, s in zip(extents, strides, strict=True)]
    if shape is None:
        return borders(node, extents, extents, strides)
    totals = [w - s for w, s in zip(whole, shape[-len(whole) :], strict=True)]
    upper = automatic == "SAME_UPPER"
    halves = [max(0, n // 2 if upper else n - n // 2) for n in totals]
    return [(half, n - half) for half, n in zip(halves, totals, strict=True)]  # a larger result has zeros at the end


def _windows(node: OnnxNode, x: Tensor) -> tuple[list[int], list[int], list[int], list[tuple[int, int]]]:
    """Extents, strides, dilations and padding of the windows; `ceil_mode` is padding at the end."""
    rank = len(x.shape) - 2
    window = spatial(node, "kernel_shape", rank)
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    padding = borders(node, x.shape[2:], reach, strides)
    if node.integer("ceil_mode", 0):
        for d, (extent, (low, high)) in enumerate(zip(x.shape[2:], padding, strict=True)):
            span = extent + low + high - reach[d]
            steps = -(-span // strides[d])
            if steps * strides[d] >= extent + low:  # a window must begin inside
                steps -= 1
            padding[d] = (low, high + max(0, steps * strides[d] - span))
    for extent, size, (low, high) in zip(x.shape[2:], reach, padding, strict=True):
        if size > extent + low + high:
            raise node.error(f"a window of {size} positions is larger than the padded input, {extent + low + high}")
    return window, strides, dilations, padding


def _reduced(
    t: Tensors, name: str, x: Tensor, window: list[int], strides: list[int], dilations: list[int], padding: Borders
) -> Tensor:
    """A reduction over windows of the spatial dimensions."""
    if max(dilations, default=1) == 1:
        return t.graph.reduce_window(name, t.value(x), [1, 1, *window], [1, 1, *strides], [(0, 0), (0, 0), *padding])
    number = float("-inf") if name == "max" else 0
    low, high = zip((0, 0), (0, 0), *padding, strict=True)
    elements = _window_elements(t, t.pad(x, low, high, number), window, strides, dilations)
    return functools.reduce(functools.partial(t.binary, "maximum" if name == "max" else "add"), elements)


def _window_elements(
    t: Tensors, padded: Tensor, window: list[int], strides: list[int], dilations: list[int]
) -> list[Tensor]:
    """For each position in a window, the elements that all windows have there."""
    extents = padded.shape[2:]
    counts = [(e - (k - 1) * d - 1) // s + 1 for e, k, d, s in zip(extents, window, dilations, strides, strict=True)]
    elements: list[Tensor] = []
    for position in np.ndindex(*window):
        offsets = [k * d for k, d in zip(position, dilations, strict=True)]
        stops = [o + (n - 1) * s + 1 for o, n, s in zip(offsets, counts, strides, strict=True)]
        elements.append(t.slice(padded, [0, 0, *offsets], [*padded.shape[:2], *stops], [1, 1, *strides]))
    return elements


@operator("MaxPool")
def max_pool(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
    """The greatest element of each window; with a further output, its number among all elements."""
    window, strides, dilations, padding = _windows(node, x)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return _reduced(t, "max", x, window, strides, dilations, padding)
    extents, rank = x.shape[2:], len(window)
    # Number of each element of an image, and -1 for its padding, which every element replaces.
    order = range(rank)[::-1] if node.integer("storage_order", 0) else range(rank)
    by_order = np.arange(math.prod(extents)).reshape([extents[d] for d in order])
    numbers = np.pad(by_order.transpose(np.argsort(order)), padding, constant_values=-1)[None, None]
    low, high = zip((0, 0), (0, 0), *padding, strict=True)
    least = float("-inf") if is_float(x.dtype) else np.iinfo(x.dtype).min
    parts = zip(
        _window_elements(t, t.pad(x, low, high, least), window, strides, dilations),
        _window_elements(t, numbers, window, strides, dilations),
        strict=True,
    )
    greatest, chosen = next(parts)
    for part, number in parts:
        is_better = t.compare("gt", part, greatest)
        if any(low for low, _ in padding):
            is_better = t.binary("or", is_better, t.compare("lt", chosen, 0))
        greatest, chosen = t.where(is_better, part, greatest), t.where(is_better, number, chosen)
    images = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * rank) * math.prod(extents)
    return greatest, t.add(t.broadcast(chosen, greatest.shape), images)


@operator("MaxUnpool")
def max_unpool(t: Tensors, node: OnnxNode, x: Tensor, numbers: Tensor, shape: Tensor | None = None) -> Tensor:
    """The inverse of MaxPool: elements at their places among zeros."""
    rank = len(x.shape) - 2
    window, strides = spatial(node, "kernel_shape", rank), spatial(node, "strides", rank)
    padding = borders(node, x.shape[2:], window, strides)
    steps = zip(x.shape[2:], window, strides, padding, strict=True)
    extents = [*x.shape[:2], *((e - 1) * s + k - low - high for e, k, s, (low, high) in steps)]
    wanted = t.integers(shape, "output_shape") or extents
    if x.shape != numbers.shape or len(wanted) != rank + 2 or any(a > b for a, b in zip(extents, wanted, strict=True)):
        t.fail(f"indices {numbers.shape} and output_shape {wanted} do not fit an input of shape {x.shape}")
    count = math.prod(x.shape)
    flat = np.zeros(math.prod(t.checked(extents)), x.dtype)
    starts, updates = t.reshape(numbers, (count, 1)), t.reshape(x, (count, 1))
    placed = t.graph.scatter(t.value(flat), t.value(starts), [0], t.value(updates)) if count else flat
    return t.pad(t.reshape(placed, extents), [0] * (rank + 2), [b - a for a, b in zip(extents, wanted, strict=True)])


@operator("Col2Im")
def col2im(t: Tensors, node: OnnxNode, x: Tensor, image: Tensor, block: Tensor) -> Tensor:
    """Sums of overlapping blocks, the columns of a matrix: what a convolution's gradient adds to its input."""
    extents, window = t.integers(image, "image_shape") or [], t.integers(block, "block_shape") or []
    rank = len(extents)
    if len(x.shape) != 3 or len(window) != rank or min(window, default=0) < 1:
        t.fail(f"blocks {window} of an image {extents} do not fit an input of shape {x.shape}")
    strides, dilations = spatial(node, "strides", rank), spatial(node, "dilations", rank)
    padding = borders(node, extents, window, strides)
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    whole = [e + low + high for e, (low, high) in zip(extents, padding, strict=True)]
    counts = [(e - r) // s + 1 for e, r, s in zip(whole, reach, strides, strict=True)]
    blocks = t.reshape(x, (x.shape[0], x.shape[1] // math.prod(window), math.prod(window), *counts))
    result: Tensor | None = None
    for number, place in enumerate(np.ndindex(*window)):
        part = t.reshape(t.part(blocks, 2, number, number + 1), (*blocks.shape[:2], *counts))
        low = [k * d for k, d in zip(place, dilations, strict=True)]
        high = [e - a - (n - 1) * s - 1 for e, a, n, s in zip(whole, low, counts, strides, strict=True)]
        spread = t.pad(part, (0, 0, *low), (0, 0, *high), interior=(0, 0, *(s - 1 for s in strides)))
        result = spread if result is None else t.add(result, spread)
    assert result is not None
    before, after = zip((0, 0), (0, 0), *padding, strict=True)
    return t.pad(result, [-n for n in before], [-n for n in after])


@operator("DeformConv", note="of images")
def deform_conv(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    w: Tensor,
    offsets: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """A convolution whose windows take interpolated elements, moved by offsets, each times a number of a mask."""
    if not len(x.shape) == len(w.shape) == len(offsets.shape) == 4:
        t.fail(f"input {x.shape}, kernel {w.shape} and offsets {offsets.shape} must have rank 4")
    groups, samples = node.integer("offset_group", 1), x.shape[0]
    window, results = w.shape[2:], offsets.shape[2:]
    strides, dilations = spatial(node, "strides", 2), spatial(node, "dilations", 2)
    padding = borders(node, x.shape[2:], window, strides)
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)]
    sizes = zip(x.shape[2:], padding, reach, strides, strict=True)
    if results != tuple((e + low + high - r) // s + 1 for e, (low, high), r, s in sizes):
        t.fail(f"offsets {offsets.shape} do not fit an input of shape {x.shape} and a kernel of shape {w.shape}")
    taps, channels = math.prod(window), x.shape[1] // groups
    moved = t.reshape(offsets, (samples * groups, taps, 2, *results))
    places: list[Tensor] = []  # (samples * groups, taps * results) for each dimension
    for d in range(2):
        steps = np.indices(window)[d].reshape(1, taps, 1, 1) * dilations[d] - padding[d][0]
        starts = np.indices(results)[d].reshape(1, 1, *results) * strides[d]
        offset = t.reshape(t.part(moved, 2, d, d + 1), (samples * groups, taps, *results))
        places.append(
            t.reshape(t.add(offset, (starts + steps).astype(x.dtype)), (samples * groups, taps * math.prod(results)))
        )
    apart = t.reshape(x, (samples * groups, channels, *x.shape[2:]))
    taken = t.reshape(interpolated(t, apart, places), (samples, groups, channels, taps, *results))
    if mask is not None:
        taken = t.multiply(taken, t.reshape(mask, (samples, groups, 1, taps, *results)))
    # A row of positions for each channel and tap, and a convolution of one position.
    columns = t.reshape(taken, (samples, groups * channels * taps, *results))
    kernel = t.reshape(w, (w.shape[0], w.shape[1] * taps, 1, 1))
    product = t.graph.convolution(
        t.value(t.rounded(columns)), t.value(t.rounded(kernel)), groups=node.integer("group", 1), dtype=x.dtype
    )
    return biased(t, product, bias)


@operator("AveragePool")
def average_pool(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The mean of each window; the padding counts or not."""
    window, strides, dilations, padding = _windows(node, x)
    total = _reduced(t, "sum", x, window, strides, dilations, padding)
    counted = node.integer("count_include_pad", 0)
    given = borders(node, x.shape[2:], [(k - 1) * d + 1 for k, d in zip(window, dilations, strict=True)], strides)
    count: Array = np.ones((), np.float64)
    rank = len(window)
    for d, ((low, high), (whole_low, whole_high)) in enumerate(zip(given, padding, strict=True)):
        extent = x.shape[2 + d]
        valid = np.zeros(extent + whole_low + whole_high)
        first = 0 if counted else whole_low
        valid[first : whole_low + extent + (high if counted else 0)] = 1
        places = np.arange(total.shape[2 + d])[:, None] * strides[d] + np.arange(window[d])[None, :] * dilations[d]
        along = valid[places].sum(axis=1)
        count = count * along.reshape([-1 if k == d else 1 for k in range(rank)])
        _ = low
    if (count == count.flat[0]).all():
        return (
            t.multiply(total, 1 / float(count.flat[0])) if _is_exact(count) else t.divide(total, float(count.flat[0]))
        )
    return t.divide(total, count.astype(x.dtype))


def _is_exact(count: Array) -> bool:
    """Whether the reciprocal of a count is a power of two."""
    return math.frexp(float(count.flat[0]))[0] == 0.5


@operator("LpPool")
def lp_pool(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The norm of each window."""
    window, strides, dilations, padding = _windows(node, x)
    p = node.integer("p", 2)
    powers = t.unary("abs", x) if p == 1 else t.multiply(x, x) if p == 2 else _power(t, t.unary("abs", x), p)
    total = _reduced(t, "sum", powers, window, strides, dilations, padding)
    return _root(t, total, p)


def _power(t: Tensors, x: Tensor, p: float) -> Tensor:
    return t.binary("power", x, np.asarray(p, x.dtype))


def _root(t: Tensors, x: Tensor, p: int) -> Tensor:
    return x if p == 1 else t.unary("sqrt", x) if p == 2 else _power(t, x, 1 / p)


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """One window for each channel."""
    axes = list(range(2, len(x.shape)))
    if node.operator == "GlobalMaxPool":
        return t.reduce("max", x, axes, keep=True)
    if node.operator == "GlobalAveragePool":
        return _mean(t, x, axes)
    p = node.integer("p", 2)
    powers = t.unary("abs", x) if p == 1 else t.multiply(x, x) if p == 2 else _power(t, t.unary("abs", x), p)
    return _root(t, t.reduce("sum", powers, axes, keep=True), p)


def _mean(t: Tensors, x: Tensor, axes: list[int]) -> Any:
    return t.graph.mean(t.value(x), axes, keep=True)
