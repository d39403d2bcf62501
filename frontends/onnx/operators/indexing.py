"""Parts of tensors at positions given by tensors."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tlx.frontends.onnx.model import Array, OnnxNode
from tlx.frontends.onnx.table import operator
from tlx.frontends.onnx.tensors import Tensor, Tensors


def _from_start(t: Tensors, indices: Tensor, extent: int) -> Tensor:
    """Indices from the start; negative ones count from the end."""
    if isinstance(indices, np.ndarray) and not (indices < 0).any():
        return indices
    return t.where(t.compare("lt", indices, 0), t.add(indices, extent), indices)


@operator("Gather")
def gather(t: Tensors, node: OnnxNode, x: Tensor, indices: Tensor) -> Tensor:
    """`numpy.take`."""
    axis = t.axis(node.integer("axis", 0), len(x.shape))
    return t.take(x, _from_start(t, indices, x.shape[axis]), axis)


@operator("OneHot")
def one_hot(t: Tensors, node: OnnxNode, indices: Tensor, depth: Tensor, values: Tensor) -> Tensor:
    """One number at a position along a new dimension, another one elsewhere."""
    rank = len(indices.shape) + 1
    axis, extent = t.axis(node.integer("axis", -1), rank), int(t.scalar(depth, "depth"))
    t.checked([*indices.shape, extent])
    whole = t.convert(indices, np.int64)
    places = t.expand(_from_start(t, whole, extent), axis)
    numbers = np.arange(extent).reshape([-1 if d == axis else 1 for d in range(rank)])
    off, on = t.part(values, 0, 0, 1), t.part(values, 0, 1, 2)
    return t.where(t.compare("eq", places, numbers), t.reshape(on, ()), t.reshape(off, ()))


@operator("GatherElements")
def gather_elements(t: Tensors, node: OnnxNode, x: Tensor, indices: Tensor) -> Tensor:
    """For each element of `indices` the element of `x` at the same place but for one dimension."""
    rank = len(x.shape)
    axis = t.axis(node.integer("axis", 0), rank)
    if not math.prod(indices.shape):
        return np.empty(indices.shape, x.dtype)
    starts = _elements(t, _from_start(t, indices, x.shape[axis]), axis)
    rows = t.graph.gather(t.value(x), t.value(starts), list(range(rank)), [1] * rank)
    return t.reshape(rows, indices.shape)


def _elements(t: Tensors, indices: Tensor, axis: int) -> Tensor:
    """Positions in all dimensions, a row for each element of `indices`."""
    columns: list[Tensor] = []
    for d, extent in enumerate(indices.shape):
        along = np.arange(extent).reshape([-1 if k == d else 1 for k in range(len(indices.shape))])
        whole = t.convert(indices, np.int64) if d == axis else np.broadcast_to(along, indices.shape)
        columns.append(t.reshape(whole, (math.prod(indices.shape), 1)))
    return t.concatenate(columns, 1)


@operator("GatherND")
def gather_nd(t: Tensors, node: OnnxNode, x: Tensor, indices: Tensor) -> Tensor:
    """Slices at positions that the last dimension of `indices` has."""
    batch, width = node.integer("batch_dims", 0), indices.shape[-1]
    if batch + width > len(x.shape) or batch < 0 or x.shape[:batch] != indices.shape[:batch]:
        t.fail(f"{batch} batch dimensions and indices {indices.shape} do not fit shape {x.shape}")
    shape = (*indices.shape[:-1], *x.shape[batch + width :])
    if not math.prod(shape):
        return np.empty(shape, x.dtype)
    rows = t.value(_rows(t, x, indices, batch, width))
    box = [1 if d < batch + width else e for d, e in enumerate(x.shape)]
    boxes = t.graph.gather(t.value(x), rows, list(range(batch + width)), box)
    return t.reshape(boxes, shape)


def _rows(t: Tensors, x: Tensor, indices: Tensor, batch: int, width: int) -> Tensor:
    """Positions from the start in the leading dimensions, a row for each slice."""
    extents = np.array(x.shape[batch : batch + width], np.int64)
    whole = t.convert(indices, np.int64)
    places = t.where(t.compare("lt", whole, 0), t.add(whole, extents), whole)
    outer = indices.shape[:-1]
    columns: list[Tensor] = []
    for d in range(batch):
        along = np.arange(x.shape[d]).reshape([-1 if k == d else 1 for k in range(len(outer))])
        columns.append(np.broadcast_to(along, outer).reshape(-1, 1))
    columns.append(t.reshape(places, (math.prod(outer), width)))
    return t.concatenate(columns, 1)


_COMBINE: Final = {"none": "set", "add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _combine(node: OnnxNode) -> str:
    name = node.text("reduction", "none")
    if name not in _COMBINE:
        raise node.error(f"reduction {name!r} is not one of {', '.join(_COMBINE)}")
    return _COMBINE[name]


@operator("ScatterND")
def scatter_nd(t: Tensors, node: OnnxNode, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """A copy with slices replaced, or combined with others."""
    width = indices.shape[-1]
    if not math.prod(updates.shape):
        return x
    if width > len(x.shape) or updates.shape != (*indices.shape[:-1], *x.shape[width:]):
        t.fail(f"indices {indices.shape} and updates {updates.shape} do not fit shape {x.shape}")
    rows = t.value(_rows(t, x, indices, 0, width))
    box = [1 if d < width else e for d, e in enumerate(x.shape)]
    boxes = t.value(t.reshape(updates, (rows.shape[0], *box)))
    return t.graph.scatter(t.value(x), rows, list(range(width)), boxes, _combine(node))


@operator("ScatterElements", "Scatter")
def scatter_elements(t: Tensors, node: OnnxNode, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """A copy with elements replaced, or combined with others."""
    rank = len(x.shape)
    axis = t.axis(node.integer("axis", 0), rank)
    if indices.shape != updates.shape or len(indices.shape) != rank:
        t.fail(f"indices {indices.shape} and updates {updates.shape} do not fit shape {x.shape}")
    if not math.prod(indices.shape):
        return x
    starts = t.value(_elements(t, _from_start(t, indices, x.shape[axis]), axis))
    boxes = t.value(t.reshape(updates, (starts.shape[0], *[1] * rank)))
    return t.graph.scatter(t.value(x), starts, list(range(rank)), boxes, _combine(node))


@operator("Compress", note="with a known condition")
def compress(t: Tensors, node: OnnxNode, x: Tensor, condition: Tensor) -> Tensor:
    """The slices for which a condition holds."""
    chosen = np.flatnonzero(t.required_constant(condition, "the condition"))
    if node.get("axis") is None:
        return t.take(t.reshape(x, (math.prod(x.shape),)), chosen, 0)
    return t.take(x, chosen, t.axis(node.integer("axis", 0), len(x.shape)))


@operator("NonZero", note="of a known tensor")
def non_zero(t: Tensors, node: OnnxNode, x: Tensor) -> Tensor:
    """Positions of the elements that are not 0."""
    _ = node
    return np.stack(np.nonzero(t.required_constant(x, "the tensor"))).astype(np.int64)


@operator("Unique", note="of a known tensor")
def unique(t: Tensors, node: OnnxNode, x: Tensor) -> tuple[Tensor, ...]:
    """The distinct elements or slices, where each occurs first, their index for each element, and their counts."""
    known = t.required_constant(x, "the tensor, whose distinct elements decide the shape of the result,")
    axis = None if node.get("axis") is None else t.axis(node.integer("axis", 0), known.ndim)
    values, first, inverse, counts = np.unique(
        known, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    if not node.integer("sorted", 1):
        order = np.argsort(first)
        values = values.take(order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return values, *(numbers.reshape(-1).astype(np.int64) for numbers in (first, inverse, counts))


@operator("TensorScatter")
def tensor_scatter(t: Tensors, node: OnnxNode, x: Tensor, updates: Tensor, places: Tensor | None = None) -> Tensor:
    """A copy with slices replaced from a position on, one per sample: updates a cache of keys or values."""
    axis, mode = t.axis(node.integer("axis", -2), len(x.shape)), node.text("mode", "linear")
    samples, length = x.shape[0], updates.shape[axis] if len(updates.shape) == len(x.shape) else 0
    fits = updates.shape == tuple(length if d == axis else e for d, e in enumerate(x.shape)) and length <= x.shape[axis]
    if not axis:
        raise node.error("axis 0 is that of the samples, which have a position each: choose another one")
    if not fits or (places is not None and places.shape != (samples,)):
        t.fail(f"updates {updates.shape} along dimension {axis} do not fit shape {x.shape}")
    if mode not in ("linear", "circular"):
        raise node.error(f"mode {mode!r} is not one of linear, circular")
    if not math.prod(updates.shape):
        return x
    first = np.zeros(samples, np.int64) if places is None else t.convert(places, np.int64)
    place = t.add(t.reshape(first, (samples, 1)), np.arange(length).reshape(1, length))
    if mode == "circular":
        place = t.binary("remainder", place, np.asarray(x.shape[axis]))
    columns = [np.repeat(np.arange(samples), length).reshape(-1, 1), t.reshape(place, (samples * length, 1))]
    rest = [d for d in range(1, len(x.shape)) if d != axis]
    box = [1 if d in (0, axis) else e for d, e in enumerate(x.shape)]
    boxes = t.reshape(t.transpose(updates, (0, axis, *rest)), (samples * length, *box))
    return t.graph.scatter(t.value(x), t.value(t.concatenate(columns, 1)), [0, axis], t.value(boxes))


@operator("NonMaxSuppression", note="of known boxes and scores")
def non_max_suppression(
    t: Tensors,
    node: OnnxNode,
    boxes: Tensor,
    scores: Tensor,
    most: Tensor | None = None,
    overlap: Tensor | None = None,
    least: Tensor | None = None,
) -> Tensor:
    """Rows (sample, class, box) of the boxes with the greatest scores that do not overlap."""
    if not (isinstance(boxes, np.ndarray) and isinstance(scores, np.ndarray)):
        raise node.error(
            "the number of selected boxes depends on the inputs, but no shape may: end the model at its boxes and "
            "scores, and select from those results"
        )
    count = 0 if most is None else int(t.scalar(most, "the number of boxes"))
    limit = 0.0 if overlap is None else float(t.scalar(overlap, "the threshold of overlaps"))
    minimum = -np.inf if least is None else float(t.scalar(least, "the threshold of scores"))
    rows: list[tuple[int, int, int]] = []
    for sample, kind in np.ndindex(*scores.shape[:2]):
        chosen: list[int] = []
        for box in np.argsort(-scores[sample, kind], kind="stable"):
            if len(chosen) < count and scores[sample, kind, box] > minimum:
                corners = _corners(boxes[sample], node.integer("center_point_box", 0))
                if all(_overlap(corners[box], corners[other]) <= limit for other in chosen):
                    chosen.append(int(box))
        rows += [(sample, kind, box) for box in chosen]
    return np.array(rows, np.int64).reshape(len(rows), 3)


def _corners(boxes: Array, center_point: int) -> Array:
    """Boxes as their least and greatest coordinates."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if center_point:
        first, second = first - second / 2, first + second / 2
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], 1)


def _overlap(a: Array, b: Array) -> float:
    """The share of the union of two boxes that both cover."""
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    common = float(np.prod(sides))
    union = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - common
    return common / union if union > 0 else 0.0
