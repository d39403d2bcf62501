"""Products and convolutions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Graph, Value
from tlx.intrinsics.numpy_types import small_float_of


def _dot_general(c: OperationContext) -> Results:
    numbers = c.attribute("dot_dimension_numbers")
    contracting = numbers["lhs_contracting_dimensions"], numbers["rhs_contracting_dimensions"]
    batch = numbers["lhs_batching_dimensions"], numbers["rhs_batching_dimensions"]
    return [_product(c, contracting, batch)]


def _dot(c: OperationContext) -> Results:
    x, _ = c.operands
    return [_product(c, ([x.rank - 1], [0]), ([], []))]


def _product(
    c: OperationContext, contracting: tuple[list[int], list[int]], batch: tuple[list[int], list[int]]
) -> Value:
    """A product; operands of different types, or wider than the result, are converted first.

    Of booleans, a result is whether any pair of elements is true: a sum of products that is not 0.
    """
    g, (x, y) = c.graph, c.operands
    to = c.type.dtype or x.dtype
    if to == np.bool_:
        x, y = (g.convert(v, np.int8) for v in (x, y))
        return g.not_equal(g.dot_general(x, y, contracting, batch, np.int32), 0)
    are_small = small_float_of(x.dtype) is not None and small_float_of(y.dtype) is not None
    if (x.dtype != y.dtype and not are_small) or x.dtype.itemsize > to.itemsize:
        wide = max((x.dtype, y.dtype), key=lambda dtype: dtype.itemsize)
        product = g.dot_general(g.convert(x, wide), g.convert(y, wide), contracting, batch)
        return g.convert(product, to)
    count = len(batch[0])
    rows = x.rank - count - len(contracting[0])
    shared, left, right = range(count), range(count, count + rows), range(count + rows, len(c.shape))
    if not _is_transposed(c, [*shared, *right, *left]):
        return g.dot_general(x, y, contracting, batch, to)
    product = g.dot_general(y, x, (contracting[1], contracting[0]), (batch[1], batch[0]), to)
    columns = len(right)
    order = [*shared, *range(count + columns, product.rank), *range(count, count + columns)]
    return g.transpose(product, order)


def _is_transposed(c: OperationContext, permutation: list[int]) -> bool:
    """Whether the result is only used by transposes that exchange rows and columns, as gradients of weights are."""
    users = c.translation.users(c.operation.results[0])
    transposes = [o for o in users if o is not None and o.name == "stablehlo.transpose"]
    return len(transposes) == len(users) and all(list(o.attributes["permutation"]) == permutation for o in transposes)


def _convolution(c: OperationContext) -> Results:
    """A convolution; a reversed window reverses the kernel, and batch groups become channel groups.

    A convolution without spatial dimensions gets one of extent 1.
    """
    g, (x, w) = c.graph, c.operands
    numbers: dict[str, Any] = c.attribute("dimension_numbers")
    layouts = _layouts(numbers)
    spatial = len(layouts[0]) - 2
    if not spatial:
        spatial, (lhs, rhs, out) = 1, layouts
        x, w = (g.reshape(v, (*v.shape, 1)) for v in (x, w))
        layouts = f"{lhs}X", f"{rhs}X", f"{out}X"
    ones = [1] * spatial
    if any(c.attribute("window_reversal") or ()):
        flags = zip(numbers["kernel_spatial_dimensions"], c.attribute("window_reversal"), strict=True)
        w = g.reverse(w, [d for d, is_reversed in flags if is_reversed])
    groups: int = c.attribute("feature_group_count", 1)
    batches: int = c.attribute("batch_group_count", 1)
    if batches > 1:
        x, groups = _batch_groups_as_channels(g, x, layouts[0], batches), batches
    padding = np.asarray(c.attribute("padding", ())).tolist() or [(0, 0)] * spatial
    result = g.convolution(
        x,
        w,
        strides=c.attribute("window_strides") or ones,
        padding=[(low, high) for low, high in padding],
        input_dilation=c.attribute("lhs_dilation") or ones,
        kernel_dilation=c.attribute("rhs_dilation") or ones,
        groups=groups,
        layouts=layouts,
        dtype=c.type.dtype if c.type.dtype and c.type.dtype.itemsize >= x.dtype.itemsize else None,
    )
    return [g.reshape(g.convert(result, c.type.dtype or result.dtype), c.shape)]


def _layouts(numbers: dict[str, Any]) -> tuple[str, str, str]:
    """The orders of the dimensions of input, kernel and result in the letters of `Graph.convolution`."""
    roles = (
        ("input", "N", "batch", "C", "feature"),
        ("kernel", "O", "output_feature", "I", "input_feature"),
        ("output", "N", "batch", "C", "feature"),
    )
    orders: list[str] = []
    for role, first, first_name, second, second_name in roles:
        spatial: list[int] = numbers[f"{role}_spatial_dimensions"]
        letters = {
            numbers[f"{role}_{first_name}_dimension"]: first,
            numbers[f"{role}_{second_name}_dimension"]: second,
            **dict(zip(spatial, "XYZUVW", strict=False)),
        }
        orders.append("".join(letters[d] for d in range(len(letters))))
    return orders[0], orders[1], orders[2]


def _batch_groups_as_channels(g: Graph, x: Value, layout: str, groups: int) -> Value:
    """Groups of the batch as groups of channels: `(groups * n, c, ...)` becomes `(n, groups * c, ...)`."""
    batch, channels = layout.index("N"), layout.index("C")
    split = [*x.shape[:batch], groups, x.shape[batch] // groups, *x.shape[batch + 1 :]]
    x = g.reshape(x, split)
    at = channels + (channels > batch)
    order = [d for d in range(x.rank) if d != batch]
    order.insert(order.index(at), batch)
    moved = g.transpose(x, order)
    k = order.index(batch)
    return g.reshape(moved, [*moved.shape[:k], moved.shape[k] * moved.shape[k + 1], *moved.shape[k + 2 :]])


RULES: Final[dict[str, TranslationRule]] = {
    "stablehlo.convolution": TranslationRule(_convolution, "`convolution(x, w, ...)`"),
    "stablehlo.dot": TranslationRule(_dot, "`dot_general(x, y, contracting)`"),
    "stablehlo.dot_general": TranslationRule(_dot_general, "`dot_general(x, y, contracting, batch, dtype)`"),
}
