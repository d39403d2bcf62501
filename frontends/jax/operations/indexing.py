"""Slices at positions that are values: gather, scatter, dynamic slice and update."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tlx.frontends.jax.operations.reductions import combiner
from tlx.frontends.jax.program import StablehloRegion
from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Graph, Value

_COMBINE: Final = {
    "stablehlo.add": "add",
    "stablehlo.multiply": "multiply",
    "stablehlo.maximum": "maximum",
    "stablehlo.minimum": "minimum",
}
_COMBINE_BOOLEANS: Final = {
    "stablehlo.add": "maximum",
    "stablehlo.or": "maximum",
    "stablehlo.maximum": "maximum",
    "stablehlo.multiply": "minimum",
    "stablehlo.and": "minimum",
    "stablehlo.minimum": "minimum",
}


def _dynamic_slice(c: OperationContext) -> Results:
    x, *starts = c.operands
    return [c.graph.dynamic_slice(x, starts, c.attribute("slice_sizes"))]


def _dynamic_update_slice(c: OperationContext) -> Results:
    x, update, *starts = c.operands
    return [c.graph.dynamic_update_slice(x, update, starts)]


def _start_rows(g: Graph, starts: Value, index_dim: int, batching: Sequence[int]) -> tuple[Value, list[int]]:
    """The positions as a matrix, with a column for each batching dimension, and the shape of the rows.

    Args:
        g: The graph.
        starts: The start indices.
        index_dim: Their dimension that holds the components of a position; their rank for scalars.
        batching: Their dimensions that number an element of the operand's batching dimensions.
    """
    if index_dim == starts.rank:
        starts = g.reshape(starts, (*starts.shape, 1))
    order = [d for d in range(starts.rank) if d != index_dim]
    shape = [starts.shape[d] for d in order]
    columns = [g.transpose(starts, [*order, index_dim])]
    columns += [g.iota((*shape, 1), order.index(d), starts.dtype) for d in batching]
    return g.reshape(g.concatenate(columns, len(shape)), (math.prod(shape), -1)), shape


def _gather(c: OperationContext) -> Results:
    """`Graph.gather` gives a box for each row of positions; the dimensions are then permuted to StableHLO's order."""
    g, (x, starts) = c.graph, c.operands
    numbers: dict[str, Any] = c.attribute("dimension_numbers")
    sizes: Sequence[int] = c.attribute("slice_sizes")
    batching: Sequence[int] = numbers["operand_batching_dims"]
    rows, shape = _start_rows(g, starts, numbers["index_vector_dim"], numbers["start_indices_batching_dims"])
    boxes = g.gather(x, rows, [*numbers["start_index_map"], *batching], sizes)
    left_out = {*numbers["collapsed_slice_dims"], *batching}
    box_shape = [size for d, size in enumerate(sizes) if d not in left_out]
    split = g.reshape(boxes, [*shape, *box_shape])
    offsets: Sequence[int] = numbers["offset_dims"]
    outer = iter(range(len(shape)))
    order = [len(shape) + offsets.index(d) if d in offsets else next(outer) for d in range(split.rank)]
    return [g.transpose(split, order)]


def _scatter(c: OperationContext) -> Results:
    """`Graph.scatter`; for combinations it lacks, each box is read, combined by the region, and written in turn."""
    g, many = c.graph, len(c.operands) // 2
    tensors, starts, updates = c.operands[:many], c.operands[many], c.operands[many + 1 :]
    x = tensors[0]
    combine = _combine(c.operation.regions[0], x) if many == 1 else None
    numbers: dict[str, Any] = c.attribute("scatter_dimension_numbers")
    batching: Sequence[int] = numbers["input_batching_dims"]
    rows, shape = _start_rows(g, starts, numbers["index_vector_dim"], numbers["scatter_indices_batching_dims"])
    window: Sequence[int] = numbers["update_window_dims"]
    outer = [d for d in range(updates[0].rank) if d not in window]
    extents = [updates[0].shape[d] for d in window]
    left_out = {*numbers["inserted_window_dims"], *batching}
    sizes = iter(extents)
    box = [1 if d in left_out else next(sizes) for d in range(x.rank)]
    count = math.prod(shape)
    boxes = [g.reshape(g.transpose(update, [*outer, *window]), [count, *box]) for update in updates]
    along = [*numbers["scattered_dims_to_operand_dims"], *batching]
    if combine is not None:
        return [g.scatter(x, rows, along, boxes[0], combine)]
    if not boxes[0].view.count:
        return tensors

    def is_left(k: Value, *_: Value) -> Value:
        return k < count

    def combined(k: Value, *results: Value) -> list[Value]:
        row = g.dynamic_slice(rows, (k, 0), (1, len(along)))
        old = [g.gather(result, row, along, box) for result in results]
        new = [g.dynamic_slice(each, (k, *[0] * x.rank), (1, *box)) for each in boxes]
        made = c.region(0, *old, *new)
        return [k + 1, *(g.scatter(result, row, along, m) for result, m in zip(results, made, strict=True))]

    return g.while_loop(is_left, combined, g.full((), 0, np.int32), *tensors)[1:]


def _combine(region: StablehloRegion, x: Value) -> str | None:
    """The name of the combination of `Graph.scatter` that a region computes; None for others."""
    if not region.operations and region.returned == region.parameters[1:]:
        return "set"
    return (_COMBINE_BOOLEANS if x.dtype == np.bool_ else _COMBINE).get(combiner(region) or "")


RULES: Final[dict[str, TranslationRule]] = {
    "stablehlo.dynamic_slice": TranslationRule(_dynamic_slice, "`dynamic_slice(x, starts, shape)`"),
    "stablehlo.dynamic_update_slice": TranslationRule(
        _dynamic_update_slice, "`dynamic_update_slice(x, update, starts)`"
    ),
    "stablehlo.gather": TranslationRule(_gather, "`gather(x, starts, axes, shape)`"),
    "stablehlo.scatter": TranslationRule(
        _scatter, "`scatter(x, starts, axes, updates, combine)`, or a loop of its region"
    ),
}
