"""Divergence: the values that may differ between work-items, and the barriers that some may not reach.

The checker's `Spread` describes values that certainly differ, which is an error where they must not. This
analysis finds values that may differ: the emitter needs vectors for them (`varying_names`), and `translate` warns of
barriers that some work-items may not reach (`doubtful_barriers`). A result varies if an operand does, or if
the instruction itself depends on the work-item: `subgroup_local_id`, a scan, an atomic update in an SPMD region, the
variables of `foreach`, the entries of `cooperative_matrix_apply`, a component of a cooperative matrix. Results of an
`if` with a varying condition or a `for` with varying bounds vary. Reductions and broadcasts are uniform in a subgroup,
but may differ between the subgroups of a work-group, as their ids do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tlx.diagnostics import Note, TlxWarning, warn
from tlx.frontends.tensor_language.operations.control import Barrier, For, Foreach, ForeachTile, If, Parallel, Yield
from tlx.frontends.tensor_language.operations.memory import AtomicUpdate
from tlx.frontends.tensor_language.operations.scalars import ArithBinary
from tlx.frontends.tensor_language.operations.subgroups import (
    Builtin,
    CooperativeMatrixApply,
    CooperativeMatrixExtract,
    SubgroupBroadcast,
    SubgroupOperation,
)
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region
from tlx.frontends.tensor_language.types import CoopMatrixType
from tlx.frontends.tensor_language.work_items import work_group_sizes


def varying_names(function: Function) -> frozenset[int]:
    """Ids of the defining `Name`s of values that may vary within a subgroup."""
    analysis = _DivergenceAnalysis("subgroup", masked=True)
    analysis.region(function.body)
    return frozenset(analysis.varying)


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
    analysis = _DivergenceAnalysis("work-group" if rows * columns > lanes else "subgroup", masked=False)
    analysis.region(function.body)
    return [doubt for doubt in analysis.doubts.values() if doubt is not None]


def warn_of_barriers(function: Function) -> None:
    """Issue a `TlxWarning` for each barrier that some work-items may not reach."""
    for doubt in doubtful_barriers(function):
        if isinstance(doubt.control, If):
            remedy = "take the same branch: decide by a value that is the same for all, or move the barrier out"
        else:
            remedy = "make the same number of trips: use the same bounds in all, and compute positions from the index"
        message = f"{doubt.name} may differ between work-items, but all of them must reach the barrier and {remedy}"
        warn(TlxWarning(message, doubt.name.span, [Note("the barrier", doubt.barrier.span)]), stacklevel=3)


def first_barrier(i: Instruction) -> Barrier | None:
    """The instruction itself if it is a barrier, or the first barrier in it."""
    if isinstance(i, Barrier):
        return i
    inner = (first_barrier(nested) for region in i.regions() for nested in region.instructions)
    return next((barrier for barrier in inner if barrier is not None), None)


class _DivergenceAnalysis:
    """Visits the regions of a function.

    Args:
        within: Whether values are compared within a subgroup or a work-group.
        masked: Whether the variable of a loop varies if only the trip count does, because it becomes a vector.
    """

    def __init__(self, within: Literal["subgroup", "work-group"], *, masked: bool) -> None:
        self.varying: set[int] = set()
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
                yields = [self._may_vary(name) for name in instruction.values]
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
                varies = self._depends_on_work_item(i) or any(self._may_vary(name) for name in i.operands())
                for region in i.regions():
                    self.region(region)
                self._bind_results(i, [varies] * len(i.results))
                self._origins.update((name.text, i) for name in i.results)

    def _if(self, i: If) -> None:
        then = self.region(i.then)
        otherwise = self.region(i.otherwise) if i.otherwise is not None else []
        condition = self._may_vary(i.condition)
        self._record_barrier(i, i.condition if condition else None)
        self._bind_results(i, [condition or a or b for a, b in zip(then, otherwise, strict=False)])

    def _for(self, i: For) -> None:
        """A carried value that varies in one iteration may vary in all: iterate to a fixed point."""
        differing = [name for name in (i.start, i.stop, i.step) if name is not None and self._may_vary(name)]
        bounds = bool(differing)
        self._record_barrier(i, differing[0] if bounds and not self._is_distance_common(i) else None)
        matrices = _are_matrices(i)
        carried = [(bounds or self._may_vary(name)) and not m for name, m in zip(i.initial, matrices, strict=False)]
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
        return not self._within_subgroup and self._may_vary(value)

    def _is_distance_common(self, i: For) -> bool:
        """Whether `to` is `from` plus a uniform value and the step is uniform, so that trip counts are equal."""
        origin = self._origins.get(i.stop.text)
        if not isinstance(origin, ArithBinary) or origin.op != "add" or (i.step is not None and self._may_vary(i.step)):
            return False
        pairs = ((origin.lhs, origin.rhs), (origin.rhs, origin.lhs))
        return any(start.text == i.start.text and not self._may_vary(distance) for start, distance in pairs)

    def _record_barrier(self, i: If | For, differing: Name | None) -> None:
        """Record whether all work-items reach the barrier in an instruction; the last visit counts."""
        barrier = first_barrier(i)
        if barrier is not None:
            self.doubts[id(i)] = None if differing is None else DoubtfulBarrier(i, differing, barrier)

    def _may_vary(self, name: Name) -> bool:
        return self._scope.get(name.text, False)

    def _bind_results(self, i: Instruction, varies: list[bool]) -> None:
        """Bind results; a cooperative matrix is one value of the whole subgroup."""
        self._bind(i.results, [v and not m for v, m in zip(varies, _are_matrices(i), strict=False)])

    def _bind(self, names: tuple[Name, ...], varies: list[bool]) -> None:
        for name, flag in zip(names, varies, strict=False):
            self._scope[name.text] = flag
            self._origins.pop(name.text, None)
            if flag:
                self.varying.add(id(name))


def _are_matrices(i: Instruction) -> list[bool]:
    return [isinstance(reference.type, CoopMatrixType) for reference in i.types]
