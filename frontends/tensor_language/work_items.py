"""Work-items: how many a subgroup and a work-group have, and how values differ between them.

The subgroup size is the function's attribute. Without one it is 16, or the largest power of two that divides the first
extent of the work-group if that is not a multiple of 16. Without a work-group size, a work-group is one subgroup.

The checker follows each value as `base + offsets[p]` for work-item p, where the base is either 0 or an unknown uniform
number (`Spread`):

    subgroup_local_id          Spread(exact=True,  offsets=(0, 1, ..., S-1))
    constant 8                 Spread(exact=True,  offsets=(8,))
    group_id.x                 Spread(exact=False, offsets=(0,))
    group_id.x + local id      Spread(exact=False, offsets=(0, 1, ..., S-1))
    load %A[%i]                None: nothing is known

A single offset means a uniform value, different offsets a value that varies whatever the arguments are. The rule "must
be dynamically uniform" is certainly broken where the offsets differ; where nothing is known, keeping it is up to the
author of the kernel.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.frontends.tensor_language.syntax.nodes import Function
from tlx.frontends.tensor_language.types import CoopMatrixType, ScalarType

DEFAULT_SUBGROUP_SIZE: Final = 16
LARGEST_SUBGROUP: Final = 128
LARGEST_WORK_GROUP: Final = 1 << 16


def default_subgroup_size(rows: int) -> int:
    """The subgroup size of a work-group with that many work-items in its first mode."""
    return math.gcd(rows, DEFAULT_SUBGROUP_SIZE)


def work_group_sizes(kernel: Function) -> tuple[int, tuple[int, int]]:
    """Subgroup size and work-group size of a checked kernel."""
    size = kernel.attributes.get("subgroup_size")
    shape = kernel.attributes.get("work_group_size")
    lanes = size.value if size is not None and isinstance(size.value, int) else None
    if shape is None or not isinstance(shape.value, tuple):
        lanes = lanes or DEFAULT_SUBGROUP_SIZE
        return lanes, (lanes, 1)
    rows, columns = (entry.value for entry in shape.value)
    assert isinstance(rows, int)
    assert isinstance(columns, int)
    return lanes or default_subgroup_size(rows), (rows, columns)


@dataclass(frozen=True, slots=True)
class Spread:
    """A value as `base + offsets[p]`.

    Attributes:
        exact: Whether the base is 0; otherwise it is unknown.
        offsets: One number for all work-items, or one for each.
    """

    exact: bool
    offsets: tuple[int, ...]

    @property
    def varies(self) -> bool:
        """Whether two work-items certainly hold different values."""
        return len(self.offsets) > 1


UNIFORM: Final = Spread(exact=False, offsets=(0,))


def constant_spread(value: int) -> Spread:
    """A constant, the same in all work-items."""
    return Spread(exact=True, offsets=(value,))


def lane_spread(subgroup_size: int, *, exact: bool) -> Spread:
    """0, 1, ... for the work-items, with or without an unknown base."""
    return _spread(exact, tuple(range(subgroup_size)))


def certainly_varies(spread: Spread | None) -> bool:
    """Whether the value certainly differs between work-items."""
    return spread is not None and spread.varies


def is_uniform(spread: Spread | None) -> bool:
    """Whether the value is certainly the same for all work-items."""
    return spread is not None and not spread.varies


def without_base(spread: Spread | None) -> Spread | None:
    """The same offsets with an unknown base."""
    return spread if spread is None else _spread(False, spread.offsets)


def function_spread(spread: Spread | None) -> Spread | None:
    """The result of a function: uniform if the argument is."""
    return UNIFORM if is_uniform(spread) else None


def cast_spread(spread: Spread | None, type_: ScalarType) -> Spread | None:
    """A value of an integer type converted to another type."""
    if type_.kind != "int":
        return function_spread(spread)
    return _without_overflow(spread, type_)


def binary_spread(op: str, lhs: Spread | None, rhs: Spread | None, type_: ScalarType) -> Spread | None:
    """The value of an arithmetic instruction on integers or truth values, or of a comparison."""
    if lhs is None or rhs is None:
        return None
    spread = _sum(op, lhs, rhs) or _exactly(op, lhs, rhs) or _product(op, lhs, rhs)
    if spread is None:
        return UNIFORM if is_uniform(lhs) and is_uniform(rhs) else None
    return _without_overflow(spread, type_)


def trip_counts(start: Spread | None, stop: Spread | None, step: Spread | None) -> tuple[int, ...] | None:
    """The trip count of a loop for each work-item, None if it is unknown."""
    if start is None or stop is None or step is None or not (start.exact and stop.exact and step.exact):
        return None
    if step.varies or step.offsets[0] <= 0:
        return None
    width = step.offsets[0]
    return tuple(max(0, -((a - b) // width)) for a, b in zip(*_aligned(start, stop), strict=True))


_EXACT: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": max,
    "min": min,
    "and": int.__and__,
    "or": int.__or__,
    "xor": int.__xor__,
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "rem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_than_equal": operator.le,
    "greater_than": operator.gt,
    "greater_than_equal": operator.ge,
}


def _sum(op: str, lhs: Spread, rhs: Spread) -> Spread | None:
    """`(u + a) + (v + b)` and `(u + a) - (v + b)`: unknown bases are added to one."""
    if op not in {"add", "sub"}:
        return None
    return _spread(lhs.exact and rhs.exact, tuple(map(_EXACT[op], *_aligned(lhs, rhs))))


def _exactly(op: str, lhs: Spread, rhs: Spread) -> Spread | None:
    if not (lhs.exact and rhs.exact) or op not in _EXACT or (op in {"div", "rem"} and 0 in rhs.offsets):
        return None
    return _spread(True, tuple(map(int, map(_EXACT[op], *_aligned(lhs, rhs)))))


def _product(op: str, lhs: Spread, rhs: Spread) -> Spread | None:
    """`(u + a) * 4`: a known factor scales the offsets."""
    if op != "mul" or lhs.exact == rhs.exact:
        return None
    factor, other = (lhs, rhs) if lhs.exact else (rhs, lhs)
    return None if factor.varies else _spread(False, tuple(factor.offsets[0] * o for o in other.offsets))


def _aligned(lhs: Spread, rhs: Spread) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The offsets of both, extended to the same length."""
    count = max(len(lhs.offsets), len(rhs.offsets))
    a, b = (s.offsets * count if len(s.offsets) == 1 else s.offsets for s in (lhs, rhs))
    return a, b


def _spread(exact: bool, offsets: tuple[int, ...]) -> Spread:
    if min(offsets) != max(offsets):
        return Spread(exact, offsets)
    return constant_spread(offsets[0]) if exact else UNIFORM


def _without_overflow(spread: Spread | None, type_: ScalarType) -> Spread | None:
    """The spread if its offsets fit a type; otherwise values may wrap around, and nothing is known."""
    limit = 2 if type_.kind == "bool" else 1 << (type_.bits - 1)
    if spread is None or (-limit <= min(spread.offsets) and max(spread.offsets) < limit):
        return spread
    return None if spread.varies else UNIFORM


@dataclass(frozen=True, slots=True)
class WorkItemLayout:
    """How the entries of a matrix are distributed over the work-items of a subgroup.

    Attributes:
        type: Type of the matrix.
        subgroup_size: Work-items.
    """

    type: CoopMatrixType
    subgroup_size: int

    @property
    def components(self) -> int:
        """Length of a work-item's vector."""
        return -(-self.type.rows * self.type.columns // self.subgroup_size)

    @property
    def is_linear(self) -> bool:
        """Whether chunks follow one another through the columns."""
        return self.type.rows <= self.subgroup_size

    @property
    def is_full(self) -> bool:
        """Whether every chunk lies inside the matrix."""
        return self.type.rows * self.type.columns % self.subgroup_size == 0

    @property
    def side_by_side(self) -> int:
        """`K1`: neighbouring blocks of rows that alternate."""
        blocks = self.type.rows // self.subgroup_size
        interleaved = max(1, 2 // self.type.component.size) if self.type.use == "matrix_b" else 1
        return interleaved if not self.is_linear and blocks % interleaved == 0 else 1

    def place(self, component: int) -> tuple[int, int]:
        """Row and column of the first entry of a chunk."""
        if self.is_linear:
            column, row = divmod(component * self.subgroup_size, self.type.rows)
            return row, column
        rest, k1 = divmod(component, self.side_by_side)
        k2, column = divmod(rest, self.type.columns)
        return (k1 + k2 * self.side_by_side) * self.subgroup_size, column

    def offset(self, component: int) -> int:
        """Position of a chunk's first entry in the flattened matrix."""
        row, column = self.place(component)
        return row + column * self.type.rows
