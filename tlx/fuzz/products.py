"""Products and convolutions as statements of dataflow functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tlx.fuzz.arrays import EXACT
from tlx.fuzz.dataflow import Dataflow
from tlx.fuzz.flows import Facts, Flow, ranged, unknown
from tlx.fuzz.operation import Operation
from tlx.fuzz.profiles import FAMILIES, Family
from tlx.fuzz.tensor_calls import finished
from tlx.fuzz.writer import Token
from tlx.intrinsics.contraction import EMPTY
from tlx.ir.types import FloatType, Type


def _fitting_bound(flow: Dataflow, element: Type, terms: int, other: int = 0) -> int | None:
    """Largest magnitude of floats whose products can be summed up exactly; None where there is none.

    Args:
        flow: The function.
        element: Type of the sum.
        terms: How many products are added up.
        other: Magnitude of the other factor; 0 where both are new.
    """
    if not isinstance(element, FloatType):
        return 1
    for bound in flow.random.sample([3, 1, 2, 8], 4):
        if terms * bound * (other or bound) <= EXACT[element]:
            return bound
    return None


def _sum_facts(element: Type, terms: int, *bounds: int) -> Facts:
    if not isinstance(element, FloatType):
        return unknown(element)
    most = terms * math.prod(bounds)
    return ranged(element, -most, most, zeros=False)


def _new_factor(flow: Dataflow, extents: Sequence[int], element: Type, bound: int) -> tuple[Token, int]:
    token = flow.loaded(flow.type_of(extents, element), flow.contents(element, bound=bound))
    return token, bound


def _old_factor(flow: Dataflow, least: int, most: int) -> Flow | None:
    """A value there is that may be a factor: a tensor of small integers."""

    def fits(value: Flow) -> bool:
        if value.is_mask or not least <= value.type.rank <= most:
            return False
        return not value.is_float or (value.facts.integral and value.facts.bound <= 64)

    return flow.found(fits)


def _factors(flow: Dataflow, family: Family, lhs: Sequence[int], rhs: Sequence[int], terms: int) -> _Factors | None:
    bound = _fitting_bound(flow, family[2], terms)
    if bound is None:
        return None
    a, _ = _new_factor(flow, lhs, family[0], bound)
    b, _ = _new_factor(flow, rhs, family[1], bound)
    return [a, b], _sum_facts(family[2], terms, bound, bound)


_Factors = tuple[list[Token], Facts]


def _wider(flow: Dataflow, element: Type) -> Type:
    return flow.random.choice([to for a, b, to in FAMILIES if a == b == element])


def _matmul(flow: Dataflow) -> Flow | None:
    x = _old_factor(flow, 2, 4)
    if x is not None:
        return _matmul_of(flow, x)
    family = flow.random.choice(flow.profile.families)
    batch, m, n, k = flow.product_extents()
    made = _factors(flow, family, (*batch, m, k), (*batch, k, n), k)
    return made and finished(flow, "matmul", family[2], *made)


def _matmul_of(flow: Dataflow, x: Flow) -> Flow | None:
    element = _wider(flow, x.element)
    *batch, rows, columns = x.type.extents
    width = flow.limited(x.type.count)
    left = flow.chance(0.5)
    terms = columns if left else rows
    bound = _fitting_bound(flow, element, terms, max(x.facts.bound, 1) if x.is_float else 0)
    if bound is None:
        return None
    other, _ = _new_factor(flow, (*batch, columns, width) if left else (*batch, width, rows), x.element, bound)
    tokens = [flow.token_of(x), other] if left else [other, flow.token_of(x)]
    return finished(flow, "matmul", element, tokens, _sum_facts(element, terms, bound, max(x.facts.bound, 1)))


def _mma(name: str) -> Operation:
    def operation(flow: Dataflow) -> Flow | None:
        families = [f for f in flow.profile.families if name == "smma" or not isinstance(f[2], FloatType)]
        if not families:
            return None
        family = flow.random.choice(families)
        _, m, n, k = flow.product_extents(batched=False)
        made = _factors(flow, family, (m, k), (k, n), k)
        if made is None:
            return None
        tokens, facts = made
        acc = flow.found(lambda v: v.element == family[2] and v.type.extents == (m, n) and _adds_up(v, facts))
        start = flow.token_of(acc) if acc else _new_factor(flow, (m, n), family[2], 1)[0]
        most = facts.bound + (acc.facts.bound if acc else 1)
        total = ranged(family[2], -most, most, zeros=False) if facts.integral else facts
        return finished(flow, name, family[2], [start, *tokens], total) if _is_sum(family[2], most) else None

    return operation


def _adds_up(value: Flow, facts: Facts) -> bool:
    if not value.is_float:
        return True
    return value.facts.integral and _is_sum(value.element, value.facts.bound + facts.bound)


def _is_sum(element: Type, most: int) -> bool:
    return not isinstance(element, FloatType) or most <= EXACT[element]


def _contract(flow: Dataflow) -> Flow | None:
    """Axes of the same extents in both operands, in any places, or none; sometimes with batch axes."""
    family = flow.random.choice(flow.profile.families)
    extents = [flow.random.choice([e for e in flow.profile.extents if e <= 9]) for _ in range(6)]
    count = flow.random.choice([1, 1, 2, 0])
    batches = flow.random.choice([0, 0, 1, 2])
    summed, batch = extents[:count], extents[4 : 4 + batches]
    a, axes_a, batch_a = _placed(
        flow, summed, batch, extents[2:3] * flow.random.randint(0 if count + batches else 1, 1)
    )
    b, axes_b, batch_b = _placed(
        flow, summed, batch, extents[3:4] * flow.random.randint(0 if count + batches else 1, 1)
    )
    terms = math.prod(summed)
    made = _factors(flow, family, a, b, terms)
    if made is None:
        return None
    lists = [axes_a, axes_b, batch_a, batch_b] if batches or flow.chance(0.1) else [axes_a, axes_b]
    operands = [axes or EMPTY for axes in lists] if any(lists) or flow.chance(0.2) else []
    return finished(flow, "contract", family[2], *made, operands)


def _placed(
    flow: Dataflow, summed: Sequence[int], batch: Sequence[int], free: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Extents of an operand with its dimensions in any order, and where summed and batch dimensions are."""
    whole = [*summed, *batch, *free]
    order = list(range(len(whole)))
    flow.random.shuffle(order)
    axes = tuple(order.index(at) for at in range(len(summed)))
    batches = tuple(order.index(len(summed) + at) for at in range(len(batch)))
    return tuple(whole[at] for at in order), axes, batches


def _convolution(flow: Dataflow) -> Flow | None:
    """Rank 2, or batches and channels with one to three spatial dimensions, strides, dilations and groups."""
    family = flow.random.choice(flow.profile.families)
    spatial = flow.random.choice([2, 2, 1, 3])
    flat = spatial == 2 and flow.chance(0.3)
    window = [flow.random.choice([1, 3, 2, 5, 4]) for _ in range(spatial)]
    plain = flow.chance(0.3)
    strides, holes_in, holes = (
        [first if plain else flow.random.choice(some) for _ in range(spatial)]
        for first, some in ((1, [1, 2, 1, 3]), (0, [0, 0, 0, 1, 1, 2, 3]), (0, [0, 0, 1, 2]))
    )
    image = [
        max(1, -(-((w - 1) * (h + 1) + 1 - 1) // (i + 1)) + 1) + flow.random.choice([0, 1, 4, 7, 12])
        for w, h, i in zip(window, holes, holes_in, strict=True)
    ]
    groups, channels, filters = (
        (1, 1, 1) if flat else (flow.random.choice(some) for some in ([1, 1, 2, 3], [1, 3, 4], [1, 2, 5]))
    )
    x = tuple(image) if flat else (flow.random.choice([1, 2, 3]), groups * channels, *image)
    w = tuple(window) if flat else (groups * filters, channels, *window)
    made = _factors(flow, family, x, w, math.prod(window) * channels)
    if made is None:
        return None
    extra = [] if flat or flow.chance(0.5) else [0, 0]
    vectors = [] if plain else [(*([1] * len(extra)), *strides)]
    vectors += [] if plain else [(*extra, *numbers) for numbers in (holes_in, holes)]
    return finished(flow, "convolution", family[2], *made, vectors)


PRODUCTS: Final[dict[str, Operation]] = {
    "matmul": _matmul,
    **{name: _mma(name) for name in ("umma", "smma", "usmma", "summa")},
    "contract": _contract,
    "convolution": _convolution,
}
