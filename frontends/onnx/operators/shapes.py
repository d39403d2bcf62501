"""Shapes, constants, and operators that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from tlx.frontends.onnx.model import Array, OnnxNode, StoredTensor, element_type, type_name
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors
from tlx.graph import Value
from tlx.intrinsics.numpy_types import is_float

_LONGEST_CONSTANT_RANGE: Final = 1 << 22
"""Elements of a range up to which it is a constant; a longer one is computed when the model runs."""


@operator("Identity", "Dropout", note="Dropout as in inference")
def identity(t: Tensors, node: OnnxNode, x: Tensor, ratio: Tensor | None = None, training: Tensor | None = None) -> Any:
    """The operand; the mask of Dropout is True."""
    trains = training is not None and t.scalar(training, "training_mode")
    if trains and (ratio is None or t.scalar(ratio, "ratio")):
        raise node.error("training is not supported")
    return (x, np.broadcast_to(np.True_, x.shape)) if len(node.outputs) > 1 else x


@operator("Constant")
def constant(t: Tensors, node: OnnxNode) -> Array:
    """A constant, by one of several attributes."""
    _ = t
    for name, dtype in (
        ("value", None),
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        found = node.get(name)
        if found is not None:
            return found.array if isinstance(found, StoredTensor) else np.asarray(found, dtype)
    raise node.error("is a constant of a type that is not supported: strings and sparse tensors are not")


@operator("ConstantOfShape")
def constant_of_shape(t: Tensors, node: OnnxNode, shape: Tensor) -> Array:
    """One number everywhere."""
    stored = node.get("value")
    number = stored.array.reshape(-1) if isinstance(stored, StoredTensor) else np.zeros(1, np.float32)
    extents = t.checked(t.integers(shape, "the shape") or [])
    return np.broadcast_to(number[0], extents)


@operator("Shape")
def shape_of(t: Tensors, node: OnnxNode, x: Tensor) -> Array:
    """Extents of the dimensions `start` to `end`."""
    _ = t
    return np.array(x.shape[slice(node.integer("start", 0), node.get("end"))], np.int64)


@operator("Size")
def size(t: Tensors, node: OnnxNode, x: Tensor) -> Array:
    """The number of elements."""
    _ = t, node
    return np.array(math.prod(x.shape), np.int64)


@operator("Reshape")
def reshape(t: Tensors, node: OnnxNode, x: Tensor, shape: Tensor) -> Tensor:
    """The same elements in row-major order; 0 keeps an extent, -1 is what is left."""
    extents = t.integers(shape, "the shape") or []
    if not node.integer("allowzero", 0):
        extents = [x.shape[d] if e == 0 and d < len(x.shape) else e for d, e in enumerate(extents)]
    return t.reshape(x, _filled(t, extents, math.prod(x.shape)))


def _filled(t: Tensors, extents: list[int], count: int) -> list[int]:
    """A shape whose extent of -1 is what is left of some elements."""
    t.check_rank(len(extents))
    if extents.count(-1) > 1 or min(extents, default=0) < -1:
        t.fail(f"shape {extents} must have positive extents, and at most one of -1")
    rest = math.prod(e for e in extents if e != -1)
    return [count // rest if e == -1 and rest else max(e, 0) for e in extents]


@operator("Flatten")
def flatten(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """A matrix: the dimensions before an axis, and the others."""
    axis = node.integer("axis", 1)
    before = math.prod(x.shape[: t.axis(axis, len(x.shape)) if axis != len(x.shape) else axis])
    return t.reshape(x, (before, math.prod(x.shape) // before if before else math.prod(x.shape)))


@operator("Squeeze")
def squeeze(t: Tensors, node: OnnxNode, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """Remove dimensions of extent 1; before version 13 they are an attribute."""
    named = node.integers("axes") if axes is None else t.integers(axes, "axes")
    removed = [d for d, e in enumerate(x.shape) if e == 1] if named is None else t.axes(named, len(x.shape))
    if any(x.shape[d] != 1 for d in removed):
        t.fail(f"axes {removed} of shape {x.shape} must have extent 1")
    return t.reshape(x, [e for d, e in enumerate(x.shape) if d not in removed])


@operator("Unsqueeze")
def unsqueeze(t: Tensors, node: OnnxNode, x: Tensor, axes: Tensor | None = None) -> Tensor:
    """New dimensions of extent 1; before version 13 their places are an attribute."""
    named = node.integers("axes") if axes is None else t.integers(axes, "axes")
    return t.expand(x, *(named or []))


@operator("Transpose")
def transpose(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Another order of the dimensions, by default the reverse one."""
    order = node.integers("perm")
    return t.transpose(x, list(reversed(range(len(x.shape)))) if order is None else order)


@operator("Expand")
def expand(t: Tensors, node: OnnxNode, x: Tensor, shape: Tensor) -> Tensor:
    """Broadcasting in both directions."""
    _ = node
    wanted = np.broadcast_to(np.zeros((), np.bool_), t.checked(t.integers(shape, "the shape") or []))
    return t.broadcast(x, t.common_shape(x, wanted))


@operator("Tile")
def tile(t: Tensors, node: OnnxNode, x: Tensor, repeats: Tensor) -> Tensor:
    """The tensor several times along each dimension."""
    _ = node
    counts = t.integers(repeats, "repeats") or []
    if len(counts) != len(x.shape) or min(counts, default=0) < 0:
        t.fail(f"repeats {counts} must have a positive number for each dimension of {x.shape}")
    shape = t.checked([e * n for e, n in zip(x.shape, counts, strict=True)])
    twice = [k for n, e in zip(counts, x.shape, strict=True) for k in (n, e)]
    apart = t.reshape(x, [k for e in x.shape for k in (1, e)])
    return t.reshape(t.broadcast(apart, twice), shape)


@operator("Concat")
def concat(t: Tensors, node: OnnxNode, *parts: Tensor) -> Tensor:
    """One after the other."""
    if not parts:
        raise node.error("has no inputs")
    return t.concatenate(parts, t.axis(node.integer("axis", 0), len(parts[0].shape)))


@operator("Split")
def split(t: Tensors, node: OnnxNode, x: Tensor, sizes: Tensor | None = None) -> tuple[Tensor, ...]:
    """Parts along an axis: of given sizes, or of equal ones, of which the last can be smaller."""
    axis = t.axis(node.integer("axis", 0), len(x.shape))
    extent = x.shape[axis]
    given = node.integers("split") if sizes is None else t.integers(sizes, "split")
    if given is None:
        count = node.integer("num_outputs", len(node.outputs))
        each = -(-extent // count)
        given = [max(0, min(each, extent - k * each)) for k in range(count)]
    if sum(given) != extent or min(given) < 0:
        t.fail(f"parts {given} do not add up to extent {extent} of dimension {axis}")
    ends = np.cumsum([0, *given]).tolist()
    return tuple(t.part(x, axis, a, b) for a, b in pairwise(ends))


@operator("Slice")
def slice_(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    starts: Tensor | None = None,
    ends: Tensor | None = None,
    axes: Tensor | None = None,
    steps: Tensor | None = None,
) -> Tensor:
    """Slices with steps; before version 10 their numbers are attributes."""
    first = node.integers("starts") if starts is None else t.integers(starts, "starts")
    last = node.integers("ends") if ends is None else t.integers(ends, "ends")
    if first is None or last is None:
        raise node.error("needs starts and ends")
    named = node.integers("axes") if axes is None else t.integers(axes, "axes")
    places = t.axes(range(len(first)) if named is None else named, len(x.shape))
    strides = t.integers(steps, "steps") or [1] * len(first)
    begin, stop, step = [0] * len(x.shape), list(x.shape), [1] * len(x.shape)
    for a, b, s, d in zip(first, last, strides, places, strict=True):
        begin[d], stop[d], step[d] = slice(a, b, s).indices(x.shape[d])
        if s < 0 and x.shape[d]:  # a start before the first element is that element, other than in Python
            begin[d] = max(begin[d], 0)
        if s > 0:
            stop[d] = max(begin[d], stop[d])
        elif b < -x.shape[d] or stop[d] < 0:
            stop[d] = -1
    return t.slice(x, begin, stop, step)


@operator("Pad")
def pad(
    t: Tensors,
    node: OnnxNode,
    x: Tensor,
    pads: Tensor | None = None,
    number: Tensor | None = None,
    axes: Tensor | None = None,
) -> Tensor:
    """A border of one number, of the edge's elements, of those reflected at it, or from the other side."""
    amounts = node.integers("pads") if pads is None else t.integers(pads, "pads")
    rank = len(x.shape)
    places = t.axes(t.integers(axes, "axes") or range(rank), rank)
    if amounts is None or len(amounts) != 2 * len(places):
        t.fail(f"pads {amounts} must have two numbers for each of {len(places)} dimensions")
        return x
    low, high = [0] * rank, [0] * rank
    for k, d in enumerate(places):
        low[d], high[d] = amounts[k], amounts[k + len(places)]
    mode = node.text("mode", "constant")
    if mode == "constant":
        if isinstance(number, Value):
            return _padded_by_value(t, x, low, high, number)
        return t.pad(x, low, high, node.number("value", 0.0) if number is None else t.scalar(number, "constant_value"))
    t.checked([a + e + b for a, e, b in zip(low, x.shape, high, strict=True)])
    for d in range(rank):
        # Negative numbers crop first: the border has elements of what is left.
        if min(low[d], high[d]) < 0:
            x = t.part(x, d, max(0, -low[d]), x.shape[d] + min(0, high[d]))
        if max(low[d], high[d]) > 0:
            x = t.take(x, _border(t, mode, x.shape[d], max(0, low[d]), max(0, high[d])), d)
    return x


def _padded_by_value(t: Tensors, x: Tensor, low: list[int], high: list[int], number: Value) -> Tensor:
    """A border of a number that is not known."""
    inside = t.pad(np.broadcast_to(np.True_, x.shape), low, high)
    return t.where(inside, t.pad(x, low, high), t.reshape(number, ()))


def _border(t: Tensors, mode: str, extent: int, low: int, high: int) -> Array:
    """The position that each position of a padded dimension is a copy of."""
    if not extent:
        t.fail(f"mode {mode} needs an element to repeat")
    places = np.arange(-low, extent + high)
    if mode == "edge":
        return np.clip(places, 0, extent - 1)
    if mode == "wrap":
        return places % extent
    if mode == "reflect":
        period = max(2 * (extent - 1), 1)
        folded = np.abs(places) % period
        return np.minimum(folded, period - folded) if extent > 1 else np.zeros_like(places)
    return t.fail(f"mode {mode!r} is not one of constant, edge, reflect, wrap")


@operator("Range")
def range_(t: Tensors, node: OnnxNode, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    """Numbers at equal distances."""
    _ = node
    a, b, step = (t.scalar(x, what) for x, what in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if not step:
        t.fail("delta is 0")
    count = max(0, math.ceil((b - a) / step))
    t.checked((count,))
    if count > _LONGEST_CONSTANT_RANGE:
        return t.add(t.multiply(t.graph.iota((count,), 0, start.dtype), step), a)
    return (a + np.arange(count) * step).astype(start.dtype)


@operator("EyeLike")
def eye_like(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Ones on a diagonal."""
    number = node.get("dtype")
    dtype = x.dtype if number is None else element_type(number)
    if dtype is None or len(x.shape) != 2:
        raise node.error(f"a diagonal of {type_name(number or 0)}, shape {x.shape}, is not supported")
    t.checked(x.shape)
    rows, columns = map(np.arange, x.shape)
    return t.convert(t.compare("eq", rows[:, None] + node.integer("k", 0), columns), dtype)


_MOST_RANDOM: Final = 1 << 26
_RANDOM_NOTE: Final = "the same numbers in each call; not in loops and branches"


@operator("RandomNormal", "RandomUniform", note=_RANDOM_NOTE)
def random(t: Tensors, node: OnnxNode) -> Array:
    """Random numbers, chosen when the model is translated."""
    return _random(t, node, node.integers("shape") or [], np.dtype(np.float32))


@operator("RandomNormalLike", "RandomUniformLike", note=_RANDOM_NOTE)
def random_like(t: Tensors, node: OnnxNode, x: Tensor) -> Array:
    """Random numbers, as many as another tensor has, chosen when the model is translated."""
    return _random(t, node, x.shape, x.dtype)


def _random(t: Tensors, node: OnnxNode, shape: Sequence[int], default: np.dtype[Any]) -> Array:
    number = node.get("dtype")
    dtype = default if number is None else element_type(number)
    if dtype is None or not is_float(dtype):
        raise node.error(f"random numbers of {dtype or type_name(number or 0)} are not supported")
    if t.in_region:
        raise node.error("random numbers in a loop or branch are not supported: make them an input of the model")
    if math.prod(t.checked(shape)) > _MOST_RANDOM:
        raise node.error(f"random numbers of shape {tuple(shape)} are too many: make them an input of the model")
    rng = t.random_generator(node.number("seed", 0.0))
    if "Normal" in node.operator:
        numbers = rng.normal(node.number("mean", 0.0), node.number("scale", 1.0), shape)
    else:
        numbers = rng.uniform(node.number("low", 0.0), node.number("high", 1.0), shape)
    return numbers.astype(dtype)


@operator("Trilu")
def trilu(t: Tensors, node: OnnxNode, x: Tensor, k: Tensor | None = None) -> Tensor:
    """The part of matrices above a diagonal, or with `upper=0` below it."""
    rows, columns = x.shape[-2:]
    offset = 0 if k is None else t.scalar(k, "k")
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None] if rows * columns else np.zeros((rows, columns))
    chosen = distance >= offset if node.integer("upper", 1) else distance <= offset
    return t.where(chosen, x, 0)


@operator("DepthToSpace")
def depth_to_space(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Channels become blocks of positions."""
    block = node.integer("blocksize", 1)
    n, c, h, w = x.shape
    if node.text("mode", "DCR") == "DCR":
        parts = t.reshape(x, (n, block, block, c // block**2, h, w))
        moved = t.transpose(parts, (0, 3, 4, 1, 5, 2))
    else:
        parts = t.reshape(x, (n, c // block**2, block, block, h, w))
        moved = t.transpose(parts, (0, 1, 4, 2, 5, 3))
    return t.reshape(moved, (n, c // block**2, h * block, w * block))


@operator("SpaceToDepth")
def space_to_depth(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Blocks of positions become channels."""
    block = node.integer("blocksize", 1)
    n, c, h, w = x.shape
    parts = t.reshape(x, (n, c, h // block, block, w // block, block))
    order = (0, 3, 5, 1, 2, 4) if node.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return t.reshape(t.transpose(parts, order), (n, c * block**2, h // block, w // block))


@operator("ReverseSequence")
def reverse_sequence(t: Tensors, node: OnnxNode, x: Tensor, lengths: Tensor) -> Tensor:
    """The first elements of each sample in the opposite order."""
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    if {batch, time} != {0, 1} or len(x.shape) < 2:
        t.fail(f"batch_axis {batch} and time_axis {time} must be 0 and 1")
    first = t.transpose(x, (1, 0, *range(2, len(x.shape)))) if time == 0 else x
    counts = t.integers(lengths, "sequence_lens") or []
    rows: list[Tensor] = []
    for k, count in enumerate(counts):
        row = t.part(first, 0, k, k + 1)
        places = np.concatenate([np.arange(count)[::-1], np.arange(count, first.shape[1])])
        rows.append(t.take(row, places, 1))
    result = t.concatenate(rows, 0)
    return t.transpose(result, (1, 0, *range(2, len(x.shape)))) if time == 0 else result


@operator("BitCast", note="between types of one width")
def bit_cast(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """The same bits as another type."""
    to = element_type(node.integer("to", 0))
    if to is None or to.itemsize != x.dtype.itemsize:
        raise node.error(f"from {x.dtype.name} to {type_name(node.integer('to', 0))} is not supported")
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x).view(to).reshape(x.shape)
    return t.convert(x, to) if x.dtype.kind == "b" else t.graph.bitcast(x, to)
