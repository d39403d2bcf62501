"""Constants, and operations that change shapes."""

from __future__ import annotations

from typing import Final

import numpy as np

from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Value
from tlx.graph.value import splat_value


def padded(
    c: OperationContext, x: Value, low: list[int], high: list[int], interior: list[int], filling: Value
) -> Value:
    """`pad` by a value that need not be constant."""
    number = splat_value(filling)
    if number is not None:
        return c.graph.pad(x, low, high, interior, number)
    is_inside = c.graph.pad(c.graph.full(x.shape, True, np.bool_), low, high, interior, False)
    return c.graph.where(is_inside, c.graph.pad(x, low, high, interior), filling)


def _pad(c: OperationContext) -> Results:
    x, filling = c.operands
    low, high = (list(c.attribute(f"edge_padding_{side}")) for side in ("low", "high"))
    return [padded(c, x, low, high, list(c.attribute("interior_padding")), filling)]


def _slice(c: OperationContext) -> Results:
    starts, stops, steps = (c.attribute(name) for name in ("start_indices", "limit_indices", "strides"))
    return [c.graph.slice(c.operands[0], starts, stops, steps)]


def _broadcast_in_dim(c: OperationContext) -> Results:
    return [c.graph.broadcast(c.operands[0], c.shape, c.attribute("broadcast_dimensions"))]


def _broadcast(c: OperationContext) -> Results:
    return [c.graph.broadcast(c.operands[0], c.shape)]


def _iota(c: OperationContext) -> Results:
    return [c.graph.iota(c.shape, c.attribute("iota_dimension"), c.type.dtype or np.dtype(np.int32))]


RULES: Final[dict[str, TranslationRule]] = {
    "stablehlo.broadcast": TranslationRule(_broadcast, "`broadcast(x, shape)`: a view"),
    "stablehlo.broadcast_in_dim": TranslationRule(_broadcast_in_dim, "`broadcast(x, shape, dimensions)`: a view"),
    "stablehlo.concatenate": TranslationRule(
        lambda c: [c.graph.concatenate(c.operands, c.attribute("dimension"))], "`concatenate(values, axis)`"
    ),
    "stablehlo.constant": TranslationRule(
        lambda c: [c.translation.constant(c.attribute("value"))],
        "`constant(array)`; in `tlx.jax.jit` a large one is a weight",
    ),
    "stablehlo.iota": TranslationRule(_iota, "`iota(shape, axis, dtype)`"),
    "stablehlo.pad": TranslationRule(_pad, "`pad(x, low, high, interior, number)`"),
    "stablehlo.reshape": TranslationRule(lambda c: [c.graph.reshape(c.operands[0], c.shape)], "`reshape(x, shape)`"),
    "stablehlo.reverse": TranslationRule(
        lambda c: [c.graph.reverse(c.operands[0], c.attribute("dimensions"))], "`reverse(x, axes)`"
    ),
    "stablehlo.slice": TranslationRule(_slice, "`slice(x, starts, stops, steps)`"),
    "stablehlo.transpose": TranslationRule(
        lambda c: [c.graph.transpose(c.operands[0], c.attribute("permutation"))], "`transpose(x, dimensions)`: a view"
    ),
}
