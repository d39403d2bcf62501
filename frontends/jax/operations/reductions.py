"""Reductions over dimensions and windows, and the gradient of pooling."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tlx.frontends.jax.operations.shapes import padded
from tlx.frontends.jax.program import StablehloOperation, StablehloRegion
from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Value
from tlx.graph.reductions import neutral_element
from tlx.graph.value import splat_value

_REDUCTIONS: Final = {
    "stablehlo.add": "sum",
    "stablehlo.multiply": "product",
    "stablehlo.maximum": "max",
    "stablehlo.minimum": "min",
    "stablehlo.and": "all",
    "stablehlo.or": "any",
}
_OF_BOOLEANS: Final = {"sum": "any", "product": "all", "max": "any", "min": "all"}
_LARGEST_WINDOW: Final = 256
"""Elements of a window whose positions are combined one by one."""
_COMBINE: Final = {"sum": "add", "product": "multiply", "max": "maximum", "min": "minimum", "all": "and", "any": "or"}


def combiner(region: StablehloRegion) -> str | None:
    """The operation that a region applies to its two parameters, such as `stablehlo.add`; None for another region."""
    if len(region.operations) != 1 or len(region.parameters) != 2:
        return None
    (operation,) = region.operations
    is_plain = set(operation.operands) == set(region.parameters) and region.returned == operation.results
    return operation.name if is_plain else None


def _reduction(c: OperationContext, dtype: np.dtype[Any]) -> str | None:
    """The name of the reduction of `Graph.reduce` that the operation's region computes; None for others."""
    name = _REDUCTIONS.get(combiner(c.operation.regions[0]) or "")
    if name is None:
        return None
    if dtype == np.bool_:
        return _OF_BOOLEANS.get(name, name)
    return None if name in ("all", "any") else name


def _is_neutral(name: str, initial: Value) -> bool:
    """Whether a value changes no result of a reduction."""
    return splat_value(initial) == neutral_element(name, initial.dtype)


def _reduce(c: OperationContext) -> Results:
    dimensions: Sequence[int] = c.attribute("dimensions")
    if len(c.operands) == 2:
        x, initial = c.operands
        if (name := _reduction(c, x.dtype)) is not None:
            return [_with_initial(c, name, c.graph.reduce(name, x, dimensions), initial)]
    if (extreme := _arg_extreme(c)) is not None:
        return extreme
    return _fold(c, dimensions)


def _with_initial(c: OperationContext, name: str, result: Value, initial: Value) -> Value:
    return result if _is_neutral(name, initial) else c.graph.binary(_COMBINE[name], result, initial)


def _arg_extreme(c: OperationContext) -> Results | None:
    """`argmax` and `argmin`, which are a reduction of pairs of values and indices in StableHLO.

    Values and indices of the parameters are `x, i, y, j`:

        is_better = x > y or x is NaN
        is_first = is_better or (x == y and i < j)
        return select(is_better, x, y), select(is_first, i, j)
    """
    dimensions: Sequence[int] = c.attribute("dimensions")
    name = _EXTREMES.get(_canonical_text(c.operation.regions[0]))
    if name is None or len(dimensions) != 1 or len(c.operands) != 4:
        return None
    values, indices, first, start = c.operands
    along = dimensions[0]
    reduction = "max" if name == "argmax" else "min"
    if not (_is_index(c, along) and _is_neutral(reduction, first) and splat_value(start) == 0):
        return None
    g = c.graph
    numbers = g.convert(values, np.uint8) if values.dtype == np.bool_ else values
    best = g.convert(g.reduce(reduction, numbers, along), values.dtype) if c.needed[0] else None
    found = g.argmax(numbers, along) if name == "argmax" else g.argmin(numbers, along)
    return [best, g.convert(found, indices.dtype)]


def _is_index(c: OperationContext, along: int) -> bool:
    """Whether the second operand is the index along a dimension."""
    definition = c.translation.definition(c.operation.operands[1])
    return definition is not None and definition.attributes.get("iota_dimension") == along


def _canonical_text(region: StablehloRegion) -> str:
    """The text of a region, with values numbered in order of appearance, so that equal regions have equal texts."""
    numbers = {v: k for k, v in enumerate(region.parameters)}
    lines: list[str] = []
    for operation in region.operations:
        operands = " ".join(str(numbers.get(v, "?")) for v in operation.operands)
        direction = operation.attributes.get("comparison_direction", "")
        lines.append(f"{operation.name.removeprefix('stablehlo.')}{direction and ' ' + direction} {operands}")
        numbers.update((v, len(numbers) + k) for k, v in enumerate(operation.results))
    lines.append(f"return {' '.join(str(numbers.get(v, '?')) for v in region.returned)}")
    return "; ".join(lines)


_PAIRS: Final = (
    "compare {} 0 2; compare NE 0 0; or 4 5; compare EQ 0 2; compare LT 1 3; and 7 8; or 6 9; select 6 0 2; "
    "select 10 1 3; return 11 12"
)
_INTEGER_PAIRS: Final = (
    "compare {} 0 2; compare EQ 0 2; compare LT 1 3; and 5 6; or 4 7; select 4 0 2; select 8 1 3; return 9 10"
)
_EXTREMES: Final = {
    pairs.format(direction): name
    for pairs in (_PAIRS, _INTEGER_PAIRS)
    for direction, name in (("GT", "argmax"), ("LT", "argmin"))
}


def _fold(c: OperationContext, dimensions: Sequence[int]) -> Results:
    """A reduction by any function, as `Graph.fold`."""
    count = len(c.operands) // 2

    def combine(*values: Value) -> Any:
        return tuple(c.region(0, *values))

    return list(c.graph.fold(combine, c.operands[:count], c.operands[count:], dimensions))


def _window_attributes(c: OperationContext, rank: int) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Window, strides and padding."""
    window = list(c.attribute("window_dimensions"))
    strides = list(c.attribute("window_strides") or [1] * rank)
    padding = np.asarray(c.attribute("padding", np.zeros((rank, 2), int))).tolist()
    return window, strides, [(low, high) for low, high in padding]


def _reduce_window(c: OperationContext) -> Results:
    """Windowed reductions: by `Graph.reduce_window`, or by any other function elementwise, position by position."""
    rank = c.operands[0].rank
    window, strides, padding = _window_attributes(c, rank)
    dilation = list(c.attribute("window_dilations") or [1] * rank)
    spread = [n - 1 for n in c.attribute("base_dilations") or [1] * rank]
    low, high = (list(side) for side in zip(*padding, strict=True))
    if len(c.operands) == 2 and max(dilation) == 1:
        x, initial = c.operands
        name = _reduction(c, x.dtype)
        if name is not None:  # as in XLA, padding is the neutral element, independent of the initial value
            if max(spread) > 0:
                neutral = c.graph.full((), neutral_element(name, x.dtype), x.dtype)
                x, padding = padded(c, x, low, high, spread, neutral), [(0, 0)] * rank
            result = _cumulative(c, name, x, window, strides, padding)
            if result is None:
                result = c.graph.reduce_window(name, x, window, strides, padding)
            return [_with_initial(c, name, result, initial)]
    if math.prod(window) > _LARGEST_WINDOW:
        c.refuse(f"a window of {math.prod(window)} elements must be a sum, a product, a maximum or a minimum")
    count = len(c.operands) // 2
    initials = c.operands[count:]
    pairs = zip(c.operands[:count], initials, strict=True)
    wide = [padded(c, x, low, high, spread, initial) for x, initial in pairs]
    results = [c.graph.broadcast(initial, c.shape) for initial in initials]
    for _, key in _positions(wide[0].shape, window, strides, dilation):
        results = c.region(0, *results, *(x[key] for x in wide))
    return results


def _positions(
    shape: Sequence[int], window: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> list[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """For each position within a window, its first index and the slice of the windows' elements there."""
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    counts = [(e - r) // s + 1 for e, r, s in zip(shape, reach, strides, strict=True)]
    positions: list[tuple[tuple[int, ...], tuple[slice, ...]]] = []
    for place in itertools.product(*map(range, window)):
        start = tuple(p * d for p, d in zip(place, dilation, strict=True))
        key = tuple(slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(start, counts, strides, strict=True))
        positions.append((start, key))
    return positions


def _cumulative(
    c: OperationContext,
    name: str,
    x: Value,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> Value | None:
    """A cumulative operation: a window that spans a whole dimension and slides over it, padded on one side."""
    wide = [d for d, size in enumerate(window) if size > 1]
    if len(wide) != 1 or max(strides) > 1 or name in ("all", "any"):
        return None
    along = wide[0]
    extent = x.shape[along]
    sides = {(extent - 1, 0): False, (0, extent - 1): True}
    others = [pair for d, pair in enumerate(padding) if d != along]
    if window[along] != extent or padding[along] not in sides or any(map(any, others)):
        return None
    return c.graph.cumulative(name, x, along, reverse=sides[padding[along]])


def _select_and_scatter(c: OperationContext) -> Results:
    """The gradient of max and min pooling, in passes over the positions of a window.

    At each position, the windows' elements are compared with the best so far; a second pass sums what the windows
    contribute to the elements that they selected. Windows do not overlap where the strides are as large as the window.
    """
    g, (x, source, initial) = c.graph, c.operands
    direction = _direction(c.operation.regions[0])
    if direction is None or combiner(c.operation.regions[1]) != "stablehlo.add":
        c.refuse("only the gradients of maximum and minimum pooling are supported: select by >=, > or <=, < and add")
    window, strides, padding = _window_attributes(c, x.rank)
    low, high = (list(side) for side in zip(*padding, strict=True))
    filling = g.full((), neutral_element("max" if direction[0] == "g" else "min", x.dtype), x.dtype)
    wide = padded(c, x, low, high, [0] * x.rank, filling)
    positions = _positions(wide.shape, window, strides, [1] * x.rank)
    best = wide[positions[0][1]]
    chosen = g.full(best.shape, 0, np.int32)
    for number, (_, key) in enumerate(positions[1:], 1):
        candidate = wide[key]
        keeps = g.compare(direction, best, candidate)
        best, chosen = g.where(keeps, best, candidate), g.where(keeps, chosen, number)
    total: Value | None = None
    for number, (start, _) in enumerate(positions):
        sent = g.where(g.equal(chosen, number), source, 0)
        reach = [(e - 1) * s + 1 for e, s in zip(sent.shape, strides, strict=True)]
        after = [whole - b - r for whole, b, r in zip(wide.shape, start, reach, strict=True)]
        spread = g.pad(sent, start, after, [s - 1 for s in strides])
        total = spread if total is None else total + spread
    assert total is not None
    inner = tuple(slice(b, b + e) for b, e in zip(low, x.shape, strict=True))
    result = total[inner] if any(low) or any(high) else total
    return [_with_initial(c, "sum", result, initial)]


def _direction(region: StablehloRegion) -> str | None:
    """The comparison by which a region selects its first parameter."""
    if len(region.operations) != 1 or region.operations[0].operands != region.parameters:
        return None
    operation: StablehloOperation = region.operations[0]
    direction = str(operation.attributes.get("comparison_direction", "")).lower()
    return direction if direction in ("ge", "gt", "le", "lt") else None


def _map(c: OperationContext) -> Results:
    return c.region(0, *c.operands)


RULES: Final[dict[str, TranslationRule]] = {
    "stablehlo.map": TranslationRule(_map, "the operations of its region, on tensors"),
    "stablehlo.reduce": TranslationRule(
        _reduce, "`reduce(name, x, axes)`, `argmax`, `argmin`; others by halves, elementwise"
    ),
    "stablehlo.reduce_window": TranslationRule(
        _reduce_window,
        "`reduce_window(name, x, window, strides, padding)`, `cumulative(name, x, axis)`; others elementwise",
    ),
    "stablehlo.select_and_scatter": TranslationRule(
        _select_and_scatter, "comparisons and sums of slices, one for each position of the window"
    ),
}
