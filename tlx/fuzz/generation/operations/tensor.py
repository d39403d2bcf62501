"""Tensor intrinsics as statements: products, convolutions, data movement, reductions, elementary functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tlx.fuzz.generation.dataflow import (
    ELEMENTS,
    FLOATS,
    INTEGERS,
    DataflowWriter,
    KnownValue,
    Operation,
    ValueFacts,
    facts_from_memory,
    range_facts,
    unknown_facts,
)
from tlx.fuzz.generation.model import LARGEST_EXACT
from tlx.fuzz.generation.profiles import FAMILIES, Family
from tlx.fuzz.generation.writer import TokenValue, dims_operand
from tlx.intrinsics import RuleError, lookup
from tlx.intrinsics.products import EMPTY
from tlx.intrinsics.tensor_type import TensorType
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, FloatType, Type


def result_type(
    writer: DataflowWriter,
    name: str,
    types: Sequence[TensorType],
    element: Type,
    operands: Sequence[tuple[int, ...]] = (),
) -> TensorType | None:
    """One of the possible result types of a call; None if the operands do not match."""
    row = lookup(f"llvm.tensor.{name}")
    if row is None:
        return None
    try:
        allowed = row.infer(types, operands, element)
    except RuleError:
        return None
    if writer.is_run_time:
        return allowed[0]
    counts = [type_.count for type_ in allowed]
    distinguishable = [t for at, t in enumerate(allowed) if at == 0 or counts.count(t.count) == 1]
    return writer.random.choice([distinguishable[0], writer.random.choice(distinguishable)])


def tensor_call(
    writer: DataflowWriter, name: str, result: TensorType, operands: Sequence[str], facts: ValueFacts
) -> KnownValue:
    """Write the call of an operation."""
    text = f"{writer.vector_type(result)} {writer.callee(name)}({', '.join(operands)})"
    return KnownValue(writer.call(text, result), facts.with_zero() if result.is_padded else facts)


def token_operands(tokens: Sequence[TokenValue]) -> list[str]:
    """Tokens as arguments."""
    return [f"token {token.name}" for token in tokens]


def tensor_operation(
    writer: DataflowWriter,
    name: str,
    element: Type,
    tokens: list[TokenValue],
    facts: ValueFacts,
    operands: Sequence[tuple[int, ...]] = (),
) -> KnownValue | None:
    """Write an operation on tokens and constant vectors; None if they do not match."""
    result = result_type(writer, name, [token.type for token in tokens], element, operands)
    if result is None:
        return None
    numbers = [writer.extents_or_order(name, at, values) for at, values in enumerate(operands)]
    return tensor_call(writer, name, result, [*token_operands(tokens), *numbers], facts)


def _fitting_bound(writer: DataflowWriter, element: Type, terms: int, other: int = 0) -> int | None:
    """The largest magnitude of floats whose products can be summed exactly; None if there is none.

    Args:
        writer: Writes the function.
        element: Type of the sum.
        terms: Number of products in the sum.
        other: Magnitude of the other factor; 0 if both are new.
    """
    if not isinstance(element, FloatType):
        return 1
    for bound in writer.random.sample([3, 1, 2, 8], 4):
        if terms * bound * (other or bound) <= LARGEST_EXACT[element]:
            return bound
    return None


def _sum_facts(element: Type, terms: int, *bounds: int) -> ValueFacts:
    if not isinstance(element, FloatType):
        return unknown_facts(element)
    most = terms * math.prod(bounds)
    return range_facts(element, -most, most, zeros=False)


def _new_factor(writer: DataflowWriter, extents: Sequence[int], element: Type, bound: int) -> tuple[TokenValue, int]:
    token = writer.loaded(writer.type_of(extents, element), writer.contents(element, bound=bound))
    return token, bound


def _old_factor(writer: DataflowWriter, least: int, most: int) -> KnownValue | None:
    """An existing value that may be a factor: a tensor of small integers."""

    def fits(value: KnownValue) -> bool:
        if value.is_mask or not least <= value.type.rank <= most:
            return False
        return not value.is_float or (value.facts.integral and value.facts.bound <= 64)

    return writer.existing(fits)


def _factors(
    writer: DataflowWriter, family: Family, lhs: Sequence[int], rhs: Sequence[int], terms: int
) -> _Factors | None:
    bound = _fitting_bound(writer, family[2], terms)
    if bound is None:
        return None
    a, _ = _new_factor(writer, lhs, family[0], bound)
    b, _ = _new_factor(writer, rhs, family[1], bound)
    return [a, b], _sum_facts(family[2], terms, bound, bound)


_Factors = tuple[list[TokenValue], ValueFacts]


def _wider(writer: DataflowWriter, element: Type) -> Type:
    return writer.random.choice([to for a, b, to in FAMILIES if a == b == element])


def _matmul(writer: DataflowWriter) -> KnownValue | None:
    x = _old_factor(writer, 2, 4)
    if x is not None:
        return _matmul_of(writer, x)
    family = writer.random.choice(writer.profile.families)
    batch, m, n, k = writer.product_extents()
    factors = _factors(writer, family, (*batch, m, k), (*batch, k, n), k)
    return factors and tensor_operation(writer, "matmul", family[2], *factors)


def _matmul_of(writer: DataflowWriter, x: KnownValue) -> KnownValue | None:
    element = _wider(writer, x.element)
    *batch, rows, columns = x.type.extents
    width = writer.limited(x.type.count)
    left = writer.chance(0.5)
    terms = columns if left else rows
    bound = _fitting_bound(writer, element, terms, max(x.facts.bound, 1) if x.is_float else 0)
    if bound is None:
        return None
    other, _ = _new_factor(writer, (*batch, columns, width) if left else (*batch, width, rows), x.element, bound)
    tokens = [writer.token_of(x), other] if left else [other, writer.token_of(x)]
    return tensor_operation(writer, "matmul", element, tokens, _sum_facts(element, terms, bound, max(x.facts.bound, 1)))


def _mma(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue | None:
        families = [f for f in writer.profile.families if name == "smma" or not isinstance(f[2], FloatType)]
        if not families:
            return None
        family = writer.random.choice(families)
        _, m, n, k = writer.product_extents(batched=False)
        factors = _factors(writer, family, (m, k), (k, n), k)
        if factors is None:
            return None
        tokens, facts = factors
        acc = writer.existing(lambda v: v.element == family[2] and v.type.extents == (m, n) and _adds_up(v, facts))
        start = writer.token_of(acc) if acc else _new_factor(writer, (m, n), family[2], 1)[0]
        most = facts.bound + (acc.facts.bound if acc else 1)
        total = range_facts(family[2], -most, most, zeros=False) if facts.integral else facts
        return tensor_operation(writer, name, family[2], [start, *tokens], total) if _is_sum(family[2], most) else None

    return operation


def _adds_up(value: KnownValue, facts: ValueFacts) -> bool:
    if not value.is_float:
        return True
    return value.facts.integral and _is_sum(value.element, value.facts.bound + facts.bound)


def _is_sum(element: Type, most: int) -> bool:
    return not isinstance(element, FloatType) or most <= LARGEST_EXACT[element]


def _contract(writer: DataflowWriter) -> KnownValue | None:
    """A contraction over any number of axes at any positions, sometimes with batch axes."""
    family = writer.random.choice(writer.profile.families)
    extents = [writer.random.choice([e for e in writer.profile.extents if e <= 9]) for _ in range(6)]
    count = writer.random.choice([1, 1, 2, 0])
    batches = writer.random.choice([0, 0, 1, 2])
    summed, batch = extents[:count], extents[4 : 4 + batches]
    a, axes_a, batch_a = _placed(
        writer, summed, batch, extents[2:3] * writer.random.randint(0 if count + batches else 1, 1)
    )
    b, axes_b, batch_b = _placed(
        writer, summed, batch, extents[3:4] * writer.random.randint(0 if count + batches else 1, 1)
    )
    terms = math.prod(summed)
    factors = _factors(writer, family, a, b, terms)
    if factors is None:
        return None
    lists = [axes_a, axes_b, batch_a, batch_b] if batches or writer.chance(0.1) else [axes_a, axes_b]
    operands = [axes or EMPTY for axes in lists] if any(lists) or writer.chance(0.2) else []
    return tensor_operation(writer, "contract", family[2], *factors, operands)


def _placed(
    writer: DataflowWriter, summed: Sequence[int], batch: Sequence[int], free: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Extents of an operand with permuted dimensions, and the positions of contracted and batch dimensions."""
    whole = [*summed, *batch, *free]
    order = list(range(len(whole)))
    writer.random.shuffle(order)
    axes = tuple(order.index(at) for at in range(len(summed)))
    batches = tuple(order.index(len(summed) + at) for at in range(len(batch)))
    return tuple(whole[at] for at in order), axes, batches


_ROOM_OF_LAYERS: Final = 20_000
"""Room of the profiles whose convolutions are as wide as a network's layers."""
_LAYERS: Final = ([1, 1, 1, 4], [16, 3, 32, 20], [16, 32, 40, 1])
"""Groups, and channels and filters of a group."""


def _convolution(writer: DataflowWriter) -> KnownValue | None:
    """A convolution of rank 2, or with batches, channels and one to three spatial dimensions."""
    family = writer.random.choice(writer.profile.families)
    spatial = writer.random.choice([2, 2, 1, 3])
    flat = spatial == 2 and writer.chance(0.3)
    window = [writer.random.choice([1, 3, 2, 5, 4]) for _ in range(spatial)]
    plain = writer.chance(0.3)
    strides, holes_in, holes = (
        [first if plain else writer.random.choice(some) for _ in range(spatial)]
        for first, some in ((1, [1, 2, 1, 3]), (0, [0, 0, 0, 1, 1, 2, 3]), (0, [0, 0, 1, 2]))
    )
    is_large = writer.profile.room >= _ROOM_OF_LAYERS
    image = [
        max(1, -(-((w - 1) * (h + 1) + 1 - 1) // (i + 1)) + 1)
        + writer.random.choice([6, 13, 9, 20] if is_large else [0, 1, 4, 7, 12])
        for w, h, i in zip(window, holes, holes_in, strict=True)
    ]
    groups, channels, filters = (
        (1, 1, 1)
        if flat
        else (writer.random.choice(some) for some in (_LAYERS if is_large else ([1, 1, 2, 3], [1, 3, 4], [1, 2, 5])))
    )
    x = tuple(image) if flat else (writer.random.choice([1, 2, 3]), groups * channels, *image)
    w = tuple(window) if flat else (groups * filters, channels, *window)
    if is_large and math.prod(x) * filters * math.prod(window) > writer.profile.work:
        return None
    factors = _factors(writer, family, x, w, math.prod(window) * channels)
    if factors is None:
        return None
    extra = [] if flat or writer.chance(0.5) else [0, 0]
    vectors = [] if plain else [(*([1] * len(extra)), *strides)]
    vectors += [] if plain else [(*extra, *numbers) for numbers in (holes_in, holes)]
    return tensor_operation(writer, "convolution", family[2], *factors, vectors)


PRODUCTS: Final[dict[str, Operation]] = {
    "matmul": _matmul,
    **{name: _mma(name) for name in ("umma", "smma", "usmma", "summa")},
    "contract": _contract,
    "convolution": _convolution,
}


def _moved(writer: DataflowWriter) -> tuple[KnownValue, TokenValue]:
    x = writer.mask() if writer.chance(0.1) else writer.number(ELEMENTS, exact=False)
    return x, writer.any_token_of(x)


def _transpose(writer: DataflowWriter) -> KnownValue | None:
    x, token = _moved(writer)
    if token.type.rank > 1 and writer.chance(0.3):
        return tensor_operation(writer, "transpose", x.element, [token], x.facts)
    layout = tuple(writer.random.sample(range(token.type.rank), token.type.rank))
    return tensor_operation(writer, "transpose", x.element, [token], x.facts, [layout])


def _tovector(writer: DataflowWriter) -> KnownValue | None:
    x, token = _moved(writer)
    return tensor_operation(writer, "tovector", x.element, [token], x.facts)


def _broadcast(writer: DataflowWriter) -> KnownValue | None:
    x, token = _moved(writer)
    if writer.chance(0.3):
        scalar, facts = writer.scalar(x.element)
        result = result_type(writer, "broadcast", [token.type], x.element)
        return result and tensor_call(
            writer, "broadcast", result, [*token_operands([token]), f"{x.element} {scalar}"], facts
        )
    extents = token.type.extents
    rank = writer.random.randint(len(extents), 4) if len(extents) < 4 else len(extents)
    places = writer.random.sample(range(rank), len(extents))
    room = max(1, writer.profile.room // token.type.count)
    shape = [writer.random.choice([e for e in (2, 1, 3, 5, 16) if e <= room]) if room > 1 else 1 for _ in range(rank)]
    for place, extent in zip(places, extents, strict=True):
        shape[place] = extent if extent > 1 else shape[place]
    if math.prod(shape) > 2 * writer.profile.room:
        return None
    return tensor_operation(writer, "broadcast", x.element, [token], x.facts, [tuple(shape), tuple(places)])


def _pad(writer: DataflowWriter) -> KnownValue | None:
    x, token = _moved(writer)
    extents = token.type.extents
    interior = [0 if writer.chance(0.6) else writer.random.choice([0, 1, 2]) for _ in extents]
    low = [writer.random.choice([1, 0, 2, 5, -1]) for _ in extents]
    high = [writer.random.choice([0, 1, 3, -1, -2]) for _ in extents]
    sizes = [lo + e + (e - 1) * i + hi for lo, e, i, hi in zip(low, extents, interior, high, strict=True)]
    if min(sizes) < 1 or math.prod(sizes) > 2 * writer.profile.room:
        return None
    operands = [tuple(low), tuple(high)] + ([tuple(interior)] if any(interior) or writer.chance(0.2) else [])
    result = result_type(writer, "pad", [token.type], x.element, operands)
    if result is None:
        return None
    scalar, facts = writer.scalar(x.element)
    shown = [*map(dims_operand, operands[:2]), f"{x.element} {scalar}", *map(dims_operand, operands[2:])]
    return tensor_call(writer, "pad", result, [*token_operands([token]), *shown], x.facts.joined(facts))


def _concat(writer: DataflowWriter) -> KnownValue | None:
    x, token = _moved(writer)
    axis = writer.random.randrange(token.type.rank)
    tokens, facts = [token], x.facts
    for _ in range(writer.random.randint(1, 3)):
        extents = list(token.type.extents)
        extents[axis] = writer.random.choice([1, extents[axis], 3])
        contents = writer.contents(x.element)
        tokens.append(writer.loaded(writer.type_of(extents, x.element), contents))
        facts = facts.joined(facts_from_memory(x.element, contents))
    if sum(t.type.count for t in tokens) > 2 * writer.profile.room:
        return None
    result = result_type(writer, "concat", [t.type for t in tokens], x.element, [(axis,)])
    return result and tensor_call(writer, "concat", result, [*token_operands(tokens), f"i32 {axis}"], facts)


def _block(writer: DataflowWriter) -> KnownValue | None:
    x, token = _moved(writer)
    listed = [writer.random.randrange(token.type.rank) for _ in range(writer.random.choice([1, 1, 2, 3]))]
    sizes = [writer.random.choice([2, 4, 1, 3, 16]) for _ in listed]
    if token.type.rank + len(listed) > 6 or token.type.count * math.prod(sizes) > 4 * writer.profile.room:
        return None
    return tensor_operation(
        writer, "reshape.block", x.element, [token], x.facts.with_zero(), [tuple(listed), tuple(sizes)]
    )


def _permute(writer: DataflowWriter) -> KnownValue | None:
    x, token = _moved(writer)
    order = tuple(writer.random.sample(range(token.type.rank), token.type.rank))
    count = math.prod(token.type.extents)
    shape = writer.factored(count) if writer.chance(0.6) else tuple(token.type.extents[d] for d in order)
    return tensor_operation(writer, "reshape.permute", x.element, [token], x.facts, [order, shape])


def _reduce(name: str) -> Operation:
    elements = INTEGERS if name in ("and", "or", "xor") else ELEMENTS

    def operation(writer: DataflowWriter) -> KnownValue | None:
        sums = name in ("add", "mul")
        x = writer.mask() if writer.chance(0.1) else writer.number(elements, integral=sums)
        token = writer.any_token_of(x)
        window = tuple(
            writer.random.choice([extent, 1, min(extent, 2), max(1, extent // 2), min(extent, 3)])
            for extent in token.type.extents
        )
        strides = tuple(writer.random.choice([1, w, 2, 3]) for w in window)
        facts = _reduced(name, x, math.prod(window))
        return facts and tensor_operation(writer, f"reduce.{name}", x.element, [token], facts, [window, strides])

    return operation


def _reduced(name: str, x: KnownValue, count: int) -> ValueFacts | None:
    """The facts about a reduction; None if floats would be rounded."""
    if not x.is_float:
        return x.facts if name in ("max", "min") else unknown_facts(x.element)
    if name in ("max", "min"):
        return replace(x.facts, zeros=False)
    bound = max(1, x.facts.bound)
    if name == "mul" and bound > 1 and count > 60:
        return None
    most = count * bound if name == "add" else bound**count
    return range_facts(x.element, -most, most, zeros=False) if most <= LARGEST_EXACT[x.element] else None


SHAPES: Final[dict[str, Operation]] = {
    "transpose": _transpose,
    "tovector": _tovector,
    "broadcast": _broadcast,
    **{f"reduce.{name}": _reduce(name) for name in "add mul max min and or xor".split()},
    "pad": _pad,
    "concat": _concat,
    "reshape.block": _block,
    "reshape.permute": _permute,
}


_ULPS: Final = 5.0
"""The 4 ulps that the semantics allow, and one for the evaluator's rounding."""
_NARROW_ULPS: Final = 2.0
"""Half and bfloat: computed in float, then rounded."""


def ulps_of(element: Type) -> float:
    """The number of ulps by which results of elementary functions may differ."""
    return _NARROW_ULPS if element in (HALF, BFLOAT) else _ULPS


def _unary(name: str) -> Operation:
    def operation(writer: DataflowWriter) -> KnownValue | None:
        x = writer.number((*FLOATS, *INTEGERS) if name == "relu" else FLOATS)
        token = writer.any_token_of(x)
        return tensor_call(writer, name, token.type, token_operands([token]), unary_facts(name, x))

    return operation


def unary_facts(name: str, x: KnownValue) -> ValueFacts:
    """The facts about an elementary function's result."""
    facts = x.facts
    if name == "relu":
        return replace(facts, low=max(facts.low, 0), high=max(facts.high, 0), zeros=not x.is_float)
    if name in ("floor", "ceil"):
        return facts
    if name == "fabs":
        return replace(facts, low=0, high=facts.bound)
    if name == "sqrt":
        return ValueFacts(zeros=facts.zeros)
    moderate = facts.integral and facts.bound <= 20 and x.element in (FLOAT, DOUBLE)
    return ValueFacts(ulps=ulps_of(x.element), zeros=facts.zeros, moderate=moderate)


TENSORS: Final[dict[str, Operation]] = {
    **PRODUCTS,
    **{
        name: _unary(name)
        for name in "relu fabs sqrt floor ceil tanh sigmoid erfc sin cos exp exp2 log log2 log10".split()
    },
    **SHAPES,
}
