"""Between which numbers an integer lies, for all work-items, where that is known.

It tells whether sums and products of small integers, such as `subgroup_linear_id * subgroup_size + subgroup_local_id`,
wrap around; if they do not, they grow as evenly from lane to lane in a wider type.
"""

from __future__ import annotations

from tlx.frontends.tensor_language.emit.values import Interval, Number
from tlx.frontends.tensor_language.types import ScalarType
from tlx.ir.values import ConstInt


def interval(number: Number) -> Interval | None:
    """What is known of a number."""
    if number.interval is not None:
        return number.interval
    if number.is_varying or not isinstance(number.parts[0], ConstInt):
        return None
    return number.parts[0].value, number.parts[0].value


def of_binary(op: str, type_: ScalarType, lhs: Number, rhs: Number) -> Interval | None:
    """What is known of `lhs op rhs`."""
    a, b = interval(lhs), interval(rhs)
    if type_.kind != "int" or a is None or b is None:
        return None
    match op:
        case "add":
            return within(type_, (a[0] + b[0], a[1] + b[1]))
        case "sub":
            return within(type_, (a[0] - b[1], a[1] - b[0]))
        case "mul":
            corners = [x * y for x in a for y in b]
            return within(type_, (min(corners), max(corners)))
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case _:
            return None


def of_loop(start: Number, stop: Number) -> Interval | None:
    """What is known of the variable of a loop, in the work-items that run it."""
    a, b = interval(start), interval(stop)
    return None if a is None or b is None else (a[0], max(a[0], b[1] - 1))


def within(type_: ScalarType, found: Interval | None) -> Interval | None:
    """An interval of numbers that a type holds; nothing is known of numbers that wrapped around."""
    limit = 1 << (type_.bits - 1)
    return found if found is not None and -limit <= found[0] and found[1] < limit else None
