"""Facts about a kernel: its sizes, the parameters that it writes, and which values differ between work-items.

The subgroup size is the function's attribute. Without one it is 16, or the largest power of two that divides the first
extent of the work-group if that is not a multiple of 16. Without a work-group size, a work-group is one subgroup.

What *certainly* differs is an error of the program, what *may* differ needs a vector; so there are two analyses.

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

The emitter asks for the divergent values (`varying_names`), and `translate` for barriers that some work-items may not
reach (`doubtful_barriers`). A result varies if an operand does, or if the instruction itself depends on the work-item:
`subgroup_local_id`, a scan, an atomic update in an SPMD region, the variables of `foreach`, the entries of
`cooperative_matrix_apply`, a component of a cooperative matrix. Results of an `if` with a varying condition or a `for`
with varying bounds vary. Reductions and broadcasts are uniform in a subgroup, but may differ between the subgroups of a
work-group, as their ids do.
"""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from tlx.diagnostics import Note, TlxWarning
from tlx.frontends.tensor_language.operations.control import Barrier, For, Foreach, ForeachTile, If, Parallel, Yield
from tlx.frontends.tensor_language.operations.core import entry_of
from tlx.frontends.tensor_language.operations.memory import Associated, AtomicUpdate
from tlx.frontends.tensor_language.operations.scalars import ArithBinary
from tlx.frontends.tensor_language.operations.subgroups import (
    Builtin,
    CooperativeMatrixApply,
    CooperativeMatrixExtract,
    SubgroupBroadcast,
    SubgroupOperation,
)
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region
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


@dataclass(slots=True)
class ParameterUses:
    """Positions of parameters.

    Attributes:
        written: Those whose memory the kernel changes.
        tested: Those that it compares with null.
    """

    written: set[int] = field(default_factory=set[int])
    tested: set[int] = field(default_factory=set[int])


def parameter_uses(function: Function) -> ParameterUses:
    """Which parameters a kernel writes and tests, directly or through views."""
    found = ParameterUses()
    _visit(function.body, {p.name.text: i for i, p in enumerate(function.parameters)}, found)
    return found


def _visit(region: Region, roots: dict[str, int], found: ParameterUses) -> None:
    roots = dict(roots)  # another region may redefine a name
    for instruction in region.instructions:
        viewed = _operand(instruction, entry_of(type(instruction)).views)
        if viewed is not None and viewed.text in roots:
            roots[instruction.result.text] = roots[viewed.text]
        target = written_operand(instruction)
        if target is not None and target.text in roots:
            found.written.add(roots[target.text])
        if isinstance(instruction, Associated) and instruction.operand.text in roots:
            found.tested.add(roots[instruction.operand.text])
        for inner in instruction.regions():
            _visit(inner, roots, found)


def written_operand(instruction: Instruction) -> Name | None:
    """The memref whose memory an instruction changes; None for instructions that change none."""
    return _operand(instruction, entry_of(type(instruction)).writes)


def _operand(instruction: Instruction, field: str | None) -> Name | None:
    return None if field is None else getattr(instruction, field)


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


def varies(spread: Spread | None) -> bool:
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
    return _fitting(spread, type_)


def binary_spread(op: str, lhs: Spread | None, rhs: Spread | None, type_: ScalarType) -> Spread | None:
    """The value of an arithmetic instruction on integers or truth values, or of a comparison."""
    if lhs is None or rhs is None:
        return None
    found = _sum(op, lhs, rhs) or _exactly(op, lhs, rhs) or _product(op, lhs, rhs)
    if found is None:
        return UNIFORM if is_uniform(lhs) and is_uniform(rhs) else None
    return _fitting(found, type_)


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


def _fitting(spread: Spread | None, type_: ScalarType) -> Spread | None:
    """The spread if its offsets fit a type; otherwise values may wrap around, and nothing is known."""
    limit = 2 if type_.kind == "bool" else 1 << (type_.bits - 1)
    if spread is None or (-limit <= min(spread.offsets) and max(spread.offsets) < limit):
        return spread
    return None if spread.varies else UNIFORM


def varying_names(function: Function) -> frozenset[int]:
    """Ids of the defining `Name`s of values that may vary within a subgroup."""
    analysis = _Analysis("subgroup", masked=True)
    analysis.region(function.body)
    return frozenset(analysis.found)


@dataclass(frozen=True, slots=True)
class DoubtfulBarrier:
    """A barrier that some work-items of a work-group may not reach.

    Attributes:
        control: The innermost `if` or `for` around it whose condition or bounds may vary.
        name: The operand that may differ.
        barrier: The first barrier in it.
    """

    control: If | For
    name: Name
    barrier: Barrier


def doubtful_barriers(function: Function) -> list[DoubtfulBarrier]:
    """Barriers in an `if` or `for` that may diverge within a work-group."""
    lanes, (rows, columns) = work_group_sizes(function)
    if math.prod((rows, columns)) == 1:
        return []
    analysis = _Analysis("work-group" if rows * columns > lanes else "subgroup", masked=False)
    analysis.region(function.body)
    return [doubt for doubt in analysis.doubts.values() if doubt is not None]


def warn_of_barriers(function: Function) -> None:
    """Issue a `TlxWarning` for each barrier that some work-items may not reach."""
    for doubt in doubtful_barriers(function):
        if isinstance(doubt.control, If):
            wanted = "take the same branch: decide by a value that is the same for all, or move the barrier out"
        else:
            wanted = "make the same number of trips: use the same bounds in all, and compute positions from the index"
        message = f"{doubt.name} may differ between work-items, but all of them must reach the barrier and {wanted}"
        warnings.warn(TlxWarning(message, doubt.name.span, [Note("the barrier", doubt.barrier.span)]), stacklevel=3)


def first_barrier(i: Instruction) -> Barrier | None:
    """The instruction itself if it is a barrier, or the first barrier in it."""
    if isinstance(i, Barrier):
        return i
    inner = (first_barrier(nested) for region in i.regions() for nested in region.instructions)
    return next((barrier for barrier in inner if barrier is not None), None)


class _Analysis:
    """Visits the regions of a function.

    Args:
        within: Whether values are compared within a subgroup or a work-group.
        masked: Whether the variable of a loop varies if only the trip count does, because it becomes a vector.
    """

    def __init__(self, within: Literal["subgroup", "work-group"], *, masked: bool) -> None:
        self.found: set[int] = set()
        self.doubts: dict[int, DoubtfulBarrier | None] = {}
        self._masked = masked
        self._within_subgroup = within == "subgroup"
        self._scope: dict[str, bool] = {}
        self._origins: dict[str, Instruction] = {}
        self._in_spmd = False

    def region(self, region: Region) -> list[bool]:
        """Visit a region; returns which of the values that it yields vary."""
        before = dict(self._scope)
        yields: list[bool] = []
        for instruction in region.instructions:
            if isinstance(instruction, Yield):
                yields = [self._varies(name) for name in instruction.values]
            else:
                self._instruction(instruction)
        self._scope = before
        return yields

    def _instruction(self, i: Instruction) -> None:
        match i:
            case If():
                self._if(i)
            case For():
                self._for(i)
            case Foreach():
                self._bind(i.variables, [True] * len(i.variables))
                self._spmd(i.body)
            case Parallel() | ForeachTile():
                self._spmd(i.body)
            case CooperativeMatrixApply():
                self._bind((i.row, i.column, i.value_name), [True] * 3)
                self.region(i.body)
                self._bind(i.results, [False])
            case SubgroupBroadcast():
                self._bind(i.results, [self._differs_between_subgroups(i.value)])
            case SubgroupOperation():
                self._bind(i.results, [i.kind != "reduce" or self._differs_between_subgroups(i.value)])
            case _:
                varies = self._depends_on_work_item(i) or any(self._varies(name) for name in i.operands())
                for region in i.regions():
                    self.region(region)
                self._bind_results(i, [varies] * len(i.results))
                self._origins.update((name.text, i) for name in i.results)

    def _if(self, i: If) -> None:
        then = self.region(i.then)
        otherwise = self.region(i.otherwise) if i.otherwise is not None else []
        condition = self._varies(i.condition)
        self._record_barrier(i, i.condition if condition else None)
        self._bind_results(i, [condition or a or b for a, b in zip(then, otherwise, strict=False)])

    def _for(self, i: For) -> None:
        """A carried value that varies in one iteration may vary in all: iterate to a fixed point."""
        differing = [name for name in (i.start, i.stop, i.step) if name is not None and self._varies(name)]
        bounds = bool(differing)
        self._record_barrier(i, differing[0] if bounds and not self._is_distance_common(i) else None)
        matrices = _are_matrices(i)
        carried = [(bounds or self._varies(name)) and not m for name, m in zip(i.initial, matrices, strict=False)]
        variable = bounds if self._masked else any(name is not i.stop for name in differing)
        while True:
            self._bind((i.variable, *i.carried), [variable, *carried])
            yields = self.region(i.body)
            following = [(a or b) and not m for a, b, m in zip(carried, yields, matrices, strict=False)]
            if following == carried or not yields:
                break
            carried = following
        self._bind(i.results, carried)

    def _spmd(self, region: Region) -> None:
        self._in_spmd = True
        self.region(region)
        self._in_spmd = False

    def _depends_on_work_item(self, i: Instruction) -> bool:
        if isinstance(i, AtomicUpdate):
            return self._in_spmd
        if isinstance(i, Builtin):
            among_subgroups = not self._within_subgroup and i.name in ("subgroup_id", "subgroup_linear_id")
            return among_subgroups or i.name == "subgroup_local_id"
        return isinstance(i, CooperativeMatrixExtract)

    def _differs_between_subgroups(self, value: Name) -> bool:
        """Whether a value that is uniform in each subgroup may differ between subgroups."""
        return not self._within_subgroup and self._varies(value)

    def _is_distance_common(self, i: For) -> bool:
        """Whether `to` is `from` plus a uniform value and the step is uniform, so that trip counts are equal."""
        origin = self._origins.get(i.stop.text)
        if not isinstance(origin, ArithBinary) or origin.op != "add" or (i.step is not None and self._varies(i.step)):
            return False
        pairs = ((origin.lhs, origin.rhs), (origin.rhs, origin.lhs))
        return any(start.text == i.start.text and not self._varies(distance) for start, distance in pairs)

    def _record_barrier(self, i: If | For, differing: Name | None) -> None:
        """Record whether all work-items reach the barrier in an instruction; the last visit counts."""
        barrier = first_barrier(i)
        if barrier is not None:
            self.doubts[id(i)] = None if differing is None else DoubtfulBarrier(i, differing, barrier)

    def _varies(self, name: Name) -> bool:
        return self._scope.get(name.text, False)

    def _bind_results(self, i: Instruction, varies: list[bool]) -> None:
        """Bind results; a cooperative matrix is one value of the whole subgroup."""
        self._bind(i.results, [v and not m for v, m in zip(varies, _are_matrices(i), strict=False)])

    def _bind(self, names: tuple[Name, ...], varies: list[bool]) -> None:
        for name, flag in zip(names, varies, strict=False):
            self._scope[name.text] = flag
            self._origins.pop(name.text, None)
            if flag:
                self.found.add(id(name))


def _are_matrices(i: Instruction) -> list[bool]:
    return [isinstance(reference.type, CoopMatrixType) for reference in i.types]
