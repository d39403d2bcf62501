"""Sorting, by comparators that compare keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tlx.frontends.jax.program import StablehloOperation, StablehloRegion
from tlx.frontends.jax.translation import OperationContext, Results, TranslationRule
from tlx.graph import Value


def _sort(c: OperationContext) -> Results:
    """`Graph.sort` by keys: the values that the comparator computes from each operand and compares.

    f(x) < f(y)   ->   the tensors are sorted by the key f(operand)
    """
    region = c.operation.regions[0]
    keys, descending = _keys(c, region)
    axis: int = c.attribute("dimension", -1)
    tensors = _key_tensors(c, region, keys)
    positions = [_is_index(c, k, axis) for k in range(len(c.operands))]
    if len(tensors) == 1 and all(p or not n for p, n in zip(positions, c.needed, strict=True)):
        order = c.graph.argsort(tensors[0], axis, descending=descending)
        return [c.graph.convert(order, x.dtype) if n else None for x, n in zip(c.operands, c.needed, strict=True)]
    others = [k for k, x in enumerate(c.operands) if c.needed[k] and (k >= len(tensors) or x is not tensors[k])]
    found = c.graph.sort(
        *tensors, *(c.operands[k] for k in others), axis=axis, keys=len(tensors), descending=descending
    )
    places = {**{k: k for k in range(len(tensors))}, **{k: len(tensors) + i for i, k in enumerate(others)}}
    return [found[places[k]] if is_needed else None for k, is_needed in enumerate(c.needed)]


def approximate_top_k(c: OperationContext) -> Results:
    """The first elements in the order of a comparator, computed exactly, which is a valid approximation."""
    configuration: Mapping[str, Any] = c.attribute("mhlo.backend_config")
    (comparator,) = c.attribute("called_computations")
    axis: int = configuration["reduction_dim"]
    _, descending = _keys(c, c.translation.body(comparator))
    found = c.graph.sort(*c.operands[: len(c.operands) // 2], axis=axis, descending=descending)
    first = (slice(None),) * axis + (slice(c.shape[axis]),)
    return [x[first] for x in found]


def _is_index(c: OperationContext, number: int, axis: int) -> bool:
    """Whether an operand is the index along a dimension."""
    definition = c.translation.definition(c.operation.operands[number])
    return definition is not None and definition.attributes.get("iota_dimension") == axis


def _keys(c: OperationContext, region: StablehloRegion) -> tuple[list[int], bool]:
    """The values that a comparator compares, of the left elements, most significant first, and the order.

    Several keys are compared one after the other: `a < b or (a == b and rest)`.
    """
    defined = {v: operation for operation in region.operations for v in operation.results}
    keys: list[int] = []
    directions: set[str] = set()
    value: int | None = region.returned[0]
    while value is not None:
        operation, value = _primary_comparison(defined, defined.get(value))
        if operation is None or operation.name != "stablehlo.compare":
            c.refuse("the comparator must be < or > of keys, or a lexicographic order of several")
        directions.add(str(operation.attributes["comparison_direction"]))
        keys.append(operation.operands[0])
    if directions not in ({"LT"}, {"GT"}):
        c.refuse(f"keys are compared by {', '.join(sorted(directions))}: compare all of them by <, or all by >")
    return keys, directions == {"GT"}


def _primary_comparison(
    defined: Mapping[int, StablehloOperation], operation: StablehloOperation | None
) -> tuple[StablehloOperation | None, int | None]:
    """The comparison of the most significant key, and the value that compares the other keys, if there are any."""
    if operation is None or operation.name != "stablehlo.or":
        return operation, None
    first, second = (defined.get(v) for v in operation.operands)
    return (first, second.operands[1]) if second is not None and second.name == "stablehlo.and" else (None, None)


def _key_tensors(c: OperationContext, region: StablehloRegion, keys: list[int]) -> list[Value]:
    """The keys of the operands: the comparator's operations, on tensors in place of elements."""
    arguments = [x for x in c.operands for _ in range(2)]
    wanted = StablehloRegion(region.parameters, region.operations, tuple(keys))
    return c.translation.inline_all(wanted, arguments, c.visible)


RULES: Final[dict[str, TranslationRule]] = {
    "stablehlo.sort": TranslationRule(_sort, "`sort(*operands, axis=, keys=, descending=)`"),
}
