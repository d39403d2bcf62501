"""Resizing and sampling.

Resizing interpolates along each dimension, by a matrix that is known when the model is translated.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tlx.frontends.onnx.model import Array, OnnxNode
from tlx.frontends.onnx.operators.products import along_axis, product
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors
from tlx.intrinsics.numpy_types import is_float

_ROUNDED: Final[dict[str, Callable[[Array], Array]]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}

_CUBIC_NEAR: Final = (1.25, -2.25, 0.0, 1.0)
_CUBIC_FAR: Final = (-0.75, 3.75, -6.0, 3.0)
"""Weights of cubic interpolation by the distance, below 1 and below 2; the highest power is first."""


@operator("Resize", "Upsample")
def resize(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    second: Tensor | None = None,
    third: Tensor | None = None,
    sizes: Tensor | None = None,
) -> Tensor:
    """Nearest, linear or cubic interpolation; linear in some dimensions is linear in one after the other.

    The inputs are `x, roi, scales, sizes`; before version 11 `x, scales`.
    """
    roi, scales = (None, second) if node.opset < 11 or node.operator == "Upsample" else (second, third)
    rank = len(x.shape)
    axes = t.axes(node.integers("axes") or range(rank), rank)
    numbers = None
    if scales is not None and math.prod(scales.shape):
        numbers = [float(n) for n in t.required_constant(scales, "scales").reshape(-1)]
    wanted = t.integers(sizes, "sizes")
    if (numbers is None) == (wanted is None) or len(numbers or wanted or ()) != len(axes):
        t.fail(f"needs either scales or sizes, a number for each of {len(axes)} dimensions")
    regions = None if roi is None or not math.prod(roi.shape) else t.required_constant(roi, "roi").reshape(2, -1)
    if numbers is None:
        wanted, numbers = _by_sizes(node, [x.shape[d] for d in axes], wanted or [])
    else:
        # In float, as in onnx and onnxruntime: 10 * 0.7 is 7.
        wanted = [math.floor(np.float32(x.shape[d]) * np.float32(n)) for d, n in zip(axes, numbers, strict=True)]
    t.checked(wanted)
    if 0 in (*wanted, *x.shape):
        shape = list(x.shape)
        for d, e in zip(axes, wanted, strict=True):
            shape[d] = e
        return np.empty(shape, x.dtype)
    mode = node.text("mode", "nearest")
    # Integers are interpolated in float, and truncated at the end, as in onnxruntime.
    dtype = x.dtype
    if mode != "nearest" and not is_float(dtype):
        x = t.convert(x, np.float32)
    repeats = [1] * rank
    for k, d in enumerate(axes):
        region = (0.0, 1.0) if regions is None else (float(regions[0][k]), float(regions[1][k]))
        extent = x.shape[d]
        places = _places(node, extent, wanted[k], numbers[k], region)
        if extent == wanted[k] and (places == np.arange(extent)).all():
            continue
        if mode == "nearest":
            nearest = _nearest(node, places, extent)
            outside = _outside(node, places, extent)
            repeats[d] = 1 if outside.any() else _repeats(nearest, extent)
            if repeats[d] == 1:
                x = t.take(x, nearest, d)
            if outside.any():
                number = node.number("extrapolation_value", 0.0)
                x = t.where(outside.reshape([-1 if i == d else 1 for i in range(rank)]), number, x)
        elif mode in ("linear", "cubic"):
            weights, outside = _weights(node, mode, extent, places, numbers[k])
            x = along_axis(t, x, weights, d)
            if outside.any():
                number = node.number("extrapolation_value", 0.0)
                x = t.where(outside.reshape([-1 if i == d else 1 for i in range(rank)]), number, x)
        else:
            t.fail(f"mode {mode!r} is not one of nearest, linear, cubic")
    return t.convert(_repeated(t, x, repeats), dtype)


def _by_sizes(node: OnnxNode, extents: list[int], sizes: list[int]) -> tuple[list[int], list[float]]:
    """Sizes and scales, where sizes are given."""
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    scales = [n / e if e else 1.0 for n, e in zip(sizes, extents, strict=True)]
    if policy == "stretch":
        return sizes, scales
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(e * scale + 0.5) for e in extents], [scale] * len(extents)


def _places(node: OnnxNode, extent: int, size: int, scale: float, region: tuple[float, float]) -> Array:
    """The position in the operand of each position of the result."""
    mode = node.text("coordinate_transformation_mode", "asymmetric" if node.opset < 11 else "half_pixel")
    # Which element is nearest to a position between two depends on its rounding: onnxruntime computes it in float.
    number = np.float32 if node.text("mode", "nearest") == "nearest" else np.float64
    x, ratio = np.arange(size, dtype=number), number(scale)
    if mode == "asymmetric":
        return x / ratio
    if mode == "align_corners":
        return x * number(extent - 1) / number(size - 1) if size > 1 else x
    if mode == "tf_crop_and_resize":
        start, end, last = *map(number, region), number(extent - 1)
        if size == 1:
            return np.array([number(0.5) * (start + end) * last])
        return start * last + x * (end - start) * last / number(size - 1)
    half = (x + number(0.5)) / ratio - number(0.5)
    if mode == "half_pixel":
        return half
    if mode == "half_pixel_symmetric":
        return number(extent / 2) * (1 - number(size) / (ratio * number(extent))) + half
    if mode == "pytorch_half_pixel":
        return half if size > 1 else np.zeros(1, number)
    raise node.error(f"coordinate_transformation_mode {mode!r} is not supported")


def _nearest(node: OnnxNode, places: Array, extent: int) -> Array:
    """The number of the element that is nearest to each position."""
    name = node.text("nearest_mode", "floor" if node.opset < 11 else "round_prefer_floor")
    if name not in _ROUNDED:
        raise node.error(f"nearest_mode {name!r} is not one of {', '.join(_ROUNDED)}")
    return np.clip(_ROUNDED[name](places), 0, extent - 1).astype(np.int64)


def _outside(node: OnnxNode, places: Array, extent: int) -> Array:
    """Whether each position takes the extrapolation value, as it is outside of the operand."""
    crops = node.text("coordinate_transformation_mode") == "tf_crop_and_resize"
    return ((places < 0) | (places > extent - 1)) & crops


def _repeats(indices: Array, extent: int) -> int:
    """How often each element follows itself; 1 if that is not all that indices do."""
    times, rest = divmod(len(indices), extent)
    return 1 if rest or not np.array_equal(indices, np.arange(len(indices)) // max(times, 1)) else times


def _repeated(t: Tensors, x: Tensor, times: Sequence[int]) -> Tensor:
    """The tensor with each element repeated along each dimension, so many times in a row."""
    pairs = list(zip(x.shape, times, strict=True))
    if max(times, default=1) == 1:
        return x
    apart = t.reshape(x, [k for e, n in pairs for k in ((e, 1) if n > 1 else (e,))])
    wide = t.broadcast(apart, [k for e, n in pairs for k in ((e, n) if n > 1 else (e,))])
    return t.reshape(wide, [e * n for e, n in pairs])


def _weights(node: OnnxNode, mode: str, extent: int, places: Array, scale: float) -> tuple[Array, Array]:
    """The matrix that interpolates along a dimension, `(extent, size)`, and which positions lie outside."""
    narrow = min(scale, 1.0) if node.integer("antialias", 0) else 1.0
    radius = 1 if mode == "linear" else 2
    first = math.floor(-radius / narrow) + 1
    left = np.ceil(places) - 1  # the element on the left of each position
    taps = np.arange(first, 2 - first)[None, :]
    distance = np.abs(taps - (places - left)[:, None]) * narrow
    numbers = np.clip(1 - distance, 0, 1) if mode == "linear" else _cubic(distance, node.number("cubic_coeff_a", -0.75))
    columns = (left[:, None] + taps).astype(np.int64)
    if node.integer("exclude_outside", 0):
        numbers = np.where((columns < 0) | (columns >= extent), 0, numbers)
    if narrow < 1 or node.integer("exclude_outside", 0):
        numbers = numbers / numbers.sum(axis=1, keepdims=True)
    matrix = np.zeros((extent, len(places)))
    np.add.at(matrix, (np.clip(columns, 0, extent - 1), np.arange(len(places))[:, None]), numbers)
    return matrix, _outside(node, places, extent)


def _cubic(distance: Array, a: float) -> Array:
    """Weights of cubic interpolation by the distance."""
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = a * (((distance - 5) * distance + 8) * distance - 4)
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


@operator("AffineGrid")
def affine_grid(t: Tensors, node: OnnxNode, matrices: Tensor, size: Tensor) -> Tensor:
    """Positions for GridSample: those of the elements of a tensor, times `matrices`, `(N, D, D + 1)`."""
    sizes = t.integers(size, "size") or []
    extents = sizes[2:]
    rank = len(extents)
    if rank not in (2, 3) or matrices.shape != (sizes[0], rank, rank + 1):
        t.fail(f"matrices of shape {matrices.shape} do not fit size {sizes}")
    ends = [1 if node.integer("align_corners", 0) and e > 1 else 1 - 1 / max(e, 1) for e in extents]
    along = [np.linspace(-end, end, e) for end, e in zip(ends, extents, strict=True)]
    last_first = np.meshgrid(*along, indexing="ij")[::-1]
    positions = np.stack([*last_first, np.ones(extents)], axis=-1).reshape(-1, rank + 1).astype(matrices.dtype)
    return t.reshape(product(t, positions, t.transpose(matrices, (0, 2, 1))), (sizes[0], *extents, rank))


@operator("GridSample")
def grid_sample(t: Tensors, node: OnnxNode, x: Tensor, grid: Tensor) -> Tensor:
    """Elements of `x`, `(N, C, D...)`, at positions between -1 and 1: `grid` is `(N, E..., number of D)`."""
    rank = len(x.shape) - 2
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.text("mode", "linear"), node.text("mode", "linear"))
    border = node.text("padding_mode", "zeros")
    if rank < 1 or len(grid.shape) != rank + 2 or grid.shape[-1] != rank or grid.shape[0] != x.shape[0]:
        t.fail(f"a grid of shape {grid.shape} does not fit an input of shape {x.shape}")
    if mode not in ("linear", "nearest", "cubic") or border not in ("zeros", "border", "reflection"):
        raise node.error(f"mode {mode!r} with padding {border!r} is not supported")
    count = math.prod(grid.shape[1:-1])

    def inside(place: Tensor, extent: int) -> Tensor:
        """A position moved to an element, unless it may be outside."""
        if border == "border":
            return t.minimum(t.maximum(place, 0), extent - 1)
        return _reflected(t, node, place, extent) if border == "reflection" else place

    places: list[Tensor] = []  # (N, count) for each spatial dimension
    for d in range(rank):
        extent = x.shape[2 + d]
        axis = len(grid.shape) - 1
        along = t.reshape(t.part(grid, axis, rank - 1 - d, rank - d), (x.shape[0], count))
        scale, offset = (
            ((extent - 1) / 2, (extent - 1) / 2) if node.integer("align_corners", 0) else (extent / 2, (extent - 1) / 2)
        )
        place = t.add(t.multiply(along, scale), offset)
        places.append(place if mode == "cubic" else inside(place, extent))
    if mode == "nearest":
        result = _gathered(t, x, [t.unary("round", place) for place in places], border == "zeros")
    elif mode == "linear":
        result = interpolated(t, x, places, is_zero_outside=border == "zeros")
    else:
        taps = [_cubic_taps(t, place) for place in places]
        moved = [[(inside(at, e), weight) for at, weight in tap] for tap, e in zip(taps, x.shape[2:], strict=True)]
        result = _weighted(t, x, moved, border == "zeros")
    return t.reshape(result, (*x.shape[:2], *grid.shape[1:-1]))


def interpolated(t: Tensors, x: Tensor, places: Sequence[Tensor], *, is_zero_outside: bool = True) -> Tensor:
    """Elements of `x`, `(N, C, D...)`, interpolated linearly at positions, `(N, count)` for each D: `(N, C, count)`."""
    taps: list[Sequence[tuple[Tensor, Tensor]]] = []
    for place in places:
        low = t.unary("floor", place)
        far = t.subtract(place, low)
        taps.append([(low, t.subtract(1, far)), (t.add(low, 1), far)])
    return _weighted(t, x, taps, is_zero_outside)


def _cubic_taps(t: Tensors, place: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The four elements around a position, and their weights, which are polynomials of the distance."""
    low = t.unary("floor", place)
    far = t.subtract(place, low)
    taps: list[tuple[Tensor, Tensor]] = []
    for step in (-1, 0, 1, 2):
        distance = t.unary("abs", t.subtract(far, step))
        c3, c2, c1, c0 = _CUBIC_NEAR if step in (0, 1) else _CUBIC_FAR
        weight: Tensor = np.asarray(c3, distance.dtype)
        for coefficient in (c2, c1, c0):
            weight = t.add(t.multiply(weight, distance), coefficient)
        taps.append((t.add(low, step), weight))
    return taps


def _weighted(t: Tensors, x: Tensor, taps: Sequence[Sequence[tuple[Tensor, Tensor]]], is_zero_outside: bool) -> Tensor:
    """Sums of elements times weights; there are several of both along each spatial dimension."""
    result: Tensor | None = None
    for corner in itertools.product(*taps):
        weight = functools.reduce(t.multiply, [w for _, w in corner])
        term = t.multiply(_gathered(t, x, [at for at, _ in corner], is_zero_outside), t.expand(weight, 1))
        result = term if result is None else t.add(result, term)
    assert result is not None
    return result


def _reflected(t: Tensors, node: OnnxNode, place: Tensor, extent: int) -> Tensor:
    """Positions reflected at the ends: at the elements there, or half a step outside of them."""
    low, span = (0.0, extent - 1.0) if node.integer("align_corners", 0) else (-0.5, float(extent))
    if not span:
        return t.multiply(place, 0)
    distance = t.unary("abs", t.subtract(place, low))
    turns = t.unary("floor", t.divide(distance, span))
    rest = t.subtract(distance, t.multiply(turns, span))
    half = t.multiply(turns, 0.5)
    is_odd = t.compare("ne", t.unary("floor", half), half)
    folded = t.add(t.where(is_odd, t.subtract(span, rest), rest), low)
    return t.minimum(t.maximum(folded, 0), extent - 1)


def _gathered(t: Tensors, x: Tensor, places: Sequence[Tensor], is_zero_outside: bool) -> Tensor:
    """The elements at whole positions, `(N, C, count)`."""
    samples, channels, *extents = x.shape
    count = places[0].shape[1]
    inside: Tensor | None = None
    index: Tensor = np.zeros((), np.int64)
    for place, extent in zip(places, extents, strict=True):
        valid = t.binary("and", t.compare("ge", place, 0), t.compare("le", place, extent - 1))
        inside = valid if inside is None else t.binary("and", inside, valid)
        clamped = t.convert(t.minimum(t.maximum(place, 0), extent - 1), np.int64)
        index = t.add(t.multiply(index, extent), clamped)
    # Channels last, so that a row has those of one position.
    size = math.prod(extents)
    order = [0, *range(2, len(x.shape)), 1]
    rows = t.reshape(t.transpose(x, order), (samples * size, channels))
    first = (np.arange(samples, dtype=np.int64) * size).reshape(samples, 1)
    picked = t.take(rows, t.reshape(t.add(index, first), (samples * count,)), 0)
    result = t.transpose(t.reshape(picked, (samples, count, channels)), (0, 2, 1))
    return t.where(t.expand(inside, 1), result, 0) if is_zero_outside and inside is not None else result


@operator("RoiAlign", note="with a fixed sampling_ratio")
def roi_align(t: Tensors, node: OnnxNode, x: Tensor, boxes: Tensor, samples: Tensor) -> Tensor:
    """Averages, or maxima, of interpolated elements of `x`, `(N, C, H, W)`, in the cells of boxes, `(R, 4)`."""
    ratio = node.integer("sampling_ratio", 0)
    mode = node.text("mode", "avg")
    sizes = [node.integer("output_height", 1), node.integer("output_width", 1)]
    if len(x.shape) != 4 or boxes.shape != (*samples.shape, 4) or len(samples.shape) != 1:
        t.fail(f"boxes {boxes.shape} with samples {samples.shape} do not fit an input of shape {x.shape}")
    if mode not in ("avg", "max") or min(sizes) < 1:
        raise node.error(f"mode {mode!r} with output size {tuple(sizes)} is not supported")
    if ratio < 1:
        raise node.error("sampling_ratio 0 takes more samples of larger boxes: give it a number, such as 2")
    is_half = node.text("coordinate_transformation_mode", "half_pixel" if node.opset >= 16 else "") == "half_pixel"
    axes = [_along_boxes(t, node, boxes, d, x.shape[2 + d], sizes[d] * ratio, is_half) for d in (0, 1)]
    count, channels, (height, width) = boxes.shape[0], x.shape[1], x.shape[2:]
    rows = t.reshape(t.transpose(x, (0, 2, 3, 1)), (x.shape[0] * height * width, channels))
    first = t.reshape(t.multiply(t.convert(samples, np.int64), height * width), (count, 1, 1))
    result: Tensor | None = None
    for (at_y, weight_y), (at_x, weight_x) in itertools.product(*axes):
        index = t.add(t.add(t.multiply(t.expand(at_y, 2), width), t.expand(at_x, 1)), first)
        weight = t.multiply(t.expand(weight_y, 2), t.expand(weight_x, 1))
        term = t.multiply(t.take(rows, index, 0), t.expand(weight, 3))
        result = term if result is None else t.add(result, term) if mode == "avg" else t.maximum(result, term)
    assert result is not None
    cells = t.reshape(result, (count, sizes[0], ratio, sizes[1], ratio, channels))
    reduced = t.reduce("max" if mode == "max" else "sum", cells, (2, 4))
    scaled = reduced if mode == "max" else t.multiply(reduced, 1 / ratio**2)
    return t.transpose(scaled, (0, 3, 1, 2))


def _along_boxes(
    t: Tensors, node: OnnxNode, boxes: Tensor, dimension: int, extent: int, count: int, is_half: bool
) -> list[tuple[Tensor, Tensor]]:
    """The elements before and after each sample along a dimension of the boxes, `(R, count)`, and their weights.

    Samples further than one element outside have the weight 0.
    """
    offset, scale = 0.5 if is_half else 0.0, node.number("spatial_scale", 1.0)
    start, stop = (
        t.subtract(t.multiply(t.part(boxes, 1, k, k + 1), scale), offset) for k in (1 - dimension, 3 - dimension)
    )
    size = t.subtract(stop, start)
    size = size if is_half else t.maximum(size, 1)
    steps = ((np.arange(count) + 0.5) / count).astype(boxes.dtype).reshape(1, count)
    place = t.add(start, t.multiply(size, steps))
    inside = t.binary("and", t.compare("ge", place, -1), t.compare("le", place, extent))
    place = t.minimum(t.maximum(place, 0), extent - 1)
    low = t.unary("floor", place)
    far = t.subtract(place, low)
    corners = ((low, t.subtract(1, far)), (t.minimum(t.add(low, 1), extent - 1), far))
    return [(t.convert(at, np.int64), t.where(inside, weight, 0)) for at, weight in corners]
