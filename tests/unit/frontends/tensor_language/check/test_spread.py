"""Properties that are inferred for a value across a subgroup hold for any unknown base."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tlx.frontends.tensor_language.types import BOOL, F32, I8, I32, I64, ScalarType
from tlx.frontends.tensor_language.work_items import (
    UNIFORM,
    Spread,
    binary_spread,
    cast_spread,
    certainly_varies,
    constant_spread,
    function_spread,
    is_uniform,
    lane_spread,
    trip_counts,
    without_base,
)

SIZE: Final = 8
OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "div": lambda a, b: int(a / b),
    "rem": lambda a, b: a - b * int(a / b),
    "shl": lambda a, b: a << (b % 8),
}
COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_than_equal": operator.le,
    "greater_than": operator.gt,
    "greater_than_equal": operator.ge,
}
SPREADS = st.one_of(
    st.builds(constant_spread, st.integers(-128, 127)),
    st.just(UNIFORM),
    st.sampled_from([lane_spread(SIZE, exact=True), lane_spread(SIZE, exact=False)]),
    st.lists(st.integers(-128, 127), min_size=SIZE, max_size=SIZE)
    .filter(lambda values: len(set(values)) > 1)
    .map(lambda values: Spread(True, tuple(values))),
)


def values_of(spread: Spread, base: int) -> list[int]:
    """The values of the work-items for some base, as 8-bit integers."""
    offsets = spread.offsets if len(spread.offsets) > 1 else spread.offsets * SIZE
    return [wrapped(o + (0 if spread.exact else base)) for o in offsets]


def wrapped(value: int) -> int:
    return (value + 128) % 256 - 128


def assert_holds(spread: Spread | None, values: list[int]) -> None:
    """Fail if the values are not what the spread says."""
    if spread is None:
        return
    base = 0 if spread.exact else values[0] - spread.offsets[0]
    assert values_of(spread, base) == values
    assert certainly_varies(spread) == (len(set(values)) > 1)


@given(st.sampled_from(sorted(OPERATIONS)), SPREADS, SPREADS, st.integers(-128, 127), st.integers(-128, 127))
def test_arithmetic(op: str, lhs: Spread, rhs: Spread, a: int, b: int) -> None:
    left, right = values_of(lhs, a), values_of(rhs, b)
    if op in {"div", "rem"} and 0 in right:
        return
    values = [wrapped(OPERATIONS[op](x, y)) for x, y in zip(left, right, strict=True)]
    assert_holds(binary_spread(op, lhs, rhs, I8), values)


@given(st.sampled_from(sorted(COMPARISONS)), SPREADS, SPREADS, st.integers(-128, 127), st.integers(-128, 127))
def test_comparisons(op: str, lhs: Spread, rhs: Spread, a: int, b: int) -> None:
    left, right = values_of(lhs, a), values_of(rhs, b)
    values = [int(COMPARISONS[op](x, y)) for x, y in zip(left, right, strict=True)]
    assert_holds(binary_spread(op, lhs, rhs, BOOL), values)


@given(SPREADS, SPREADS, st.integers(1, 9), st.integers(-128, 127))
def test_trip_counts(start: Spread, stop: Spread, step: int, base: int) -> None:
    counts = trip_counts(start, stop, constant_spread(step))
    if counts is None:
        assert not (start.exact and stop.exact)
        return
    ranges = zip(values_of(start, base), values_of(stop, base), strict=True)
    expected = [len(range(a, b, step)) for a, b in ranges]
    assert list(counts) in (expected, expected[:1])


def test_trip_counts_of_unknown_steps() -> None:
    assert trip_counts(constant_spread(0), constant_spread(4), None) is None
    assert trip_counts(constant_spread(0), constant_spread(4), UNIFORM) is None
    assert trip_counts(constant_spread(0), constant_spread(4), constant_spread(-1)) is None
    assert trip_counts(constant_spread(0), constant_spread(4), constant_spread(0)) is None


@pytest.mark.parametrize(
    ("spread", "type_", "expected"),
    [
        (lane_spread(SIZE, exact=True), I64, lane_spread(SIZE, exact=True)),
        (lane_spread(SIZE, exact=True), F32, None),
        (UNIFORM, F32, UNIFORM),
        (constant_spread(200), I8, UNIFORM),
        (Spread(True, (0, 256)), I8, None),
        (None, I32, None),
    ],
)
def test_casts(spread: Spread | None, type_: ScalarType, expected: Spread | None) -> None:
    assert cast_spread(spread, type_) == expected


def test_unknown_values_may_differ() -> None:
    assert binary_spread("add", None, UNIFORM, I32) is None
    assert binary_spread("max", UNIFORM, lane_spread(SIZE, exact=True), I32) is None
    assert not is_uniform(None)
    assert not certainly_varies(None)
    assert function_spread(None) is None
    assert without_base(None) is None


def test_forgetting_the_base_keeps_differences() -> None:
    assert without_base(constant_spread(3)) == UNIFORM
    assert without_base(lane_spread(SIZE, exact=True)) == lane_spread(SIZE, exact=False)


def test_one_work_item_is_uniform() -> None:
    assert is_uniform(lane_spread(1, exact=True))
