"""Cutting maps, copies and reductions into slabs that threads work on, each a smaller problem of its own kind.

    100,000 x 64, by rows             slab: 1,568 x 64, 63 times, pointers 1,568 rows further each time
                                      rest: 1,216 x 64

A matrix that is dense is cut as one long row. A reduction is cut along the axis that stays, so a sum is one thread's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tlx.ir.types import Type
from tlx.lower.to_tiles.expression import Expression, Leaf
from tlx.lower.to_tiles.problem import Copy, Map, Reduction, Rows
from tlx.lower.to_tiles.rows import cut_rows, views_of
from tlx.lower.to_tiles.simplify import merged
from tlx.lower.to_tiles.view import View
from tlx.target import Target

Cut = Copy | Map | Reduction | Rows
_MOST: Final = 128
_PER_THREAD: Final = 4  # slabs that the least work of a thread is cut into
_GRANULE: Final = 16  # rows or columns
_LONG_GRANULE: Final = 1024  # elements of one long row
_BYTES: Final = 8  # a cycle, from beyond a core's own caches


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer of a kernel: its elements, and how many it moves on from slab to slab."""

    element: Type
    step: int


@dataclass(frozen=True, slots=True)
class Slabs:
    """A problem in pieces.

    Attributes:
        slab: The problem of a slab.
        count: How many slabs there are.
        rest: What is left behind them.
        pointers: The kernel's pointers.
        cycles: Work of the whole problem.
    """

    slab: Cut
    count: int
    rest: Cut | None
    pointers: tuple[Pointer, ...]
    cycles: float

    @property
    def total(self) -> int:
        """Slabs, the rest counted as one."""
        return self.count + (self.rest is not None)


def slabs_of(problem: Cut, target: Target, least: int) -> Slabs | None:
    """A problem cut into slabs for threads that work for `least` cycles or more; None if that gives less than two."""
    if isinstance(problem, Map):
        problem = merged(problem)
    rows, cols = _extents(problem)
    by_rows = problem.axis == 1 if isinstance(problem, Reduction) else rows > 1
    extent = rows if by_rows else cols
    cycles = cycles_of(problem, target)
    count = min(_MOST, int(cycles * _PER_THREAD / max(least, 1)), extent)
    pointers = _pointers(problem, by_rows=by_rows)
    if count < 2 or pointers is None:
        return None
    granule = _LONG_GRANULE if rows == 1 else _GRANULE
    size = -(-extent // count)
    if size > granule:
        size = -(-size // granule) * granule
    count, rest = divmod(extent, size)
    if count + (rest > 0) < 2:
        return None
    moving = tuple(Pointer(p.element, p.step * size) for p in pointers)
    remainder = _piece(problem, rest, by_rows=by_rows) if rest else None
    return Slabs(_piece(problem, size, by_rows=by_rows), count, remainder, moving, cycles)


def _extents(problem: Cut) -> tuple[int, int]:
    if isinstance(problem, Copy):
        return problem.source.rows, problem.source.cols
    if isinstance(problem, Rows):
        return problem.rows, problem.parts[-1].problem.value.cols
    return problem.value.rows, problem.value.cols


def cycles_of(problem: Cut, target: Target) -> float:
    """The work of a problem, roughly: what it moves, or what it computes."""
    if isinstance(problem, Copy):
        return problem.moves / _BYTES
    if isinstance(problem, Rows):
        return sum(cycles_of(part.problem, target) for part in problem.parts)
    value = problem.value
    lanes = max(1, target.vector_bytes * 8 // value.bits)
    cost = problem.cost if isinstance(problem, Reduction) else value.cost
    return max(problem.moves / _BYTES, cost * value.rows * value.cols / lanes)


def _pointers(problem: Cut, *, by_rows: bool) -> tuple[Pointer, ...] | None:
    """The kernel's pointers, with their steps from a row or column to the next; None if one has two."""
    if isinstance(problem, Copy):
        return tuple(_pointer(view, by_rows=by_rows) for view in (problem.destination, problem.source))
    if isinstance(problem, Rows):
        found: dict[int, Pointer] = {}
        for part in problem.parts:
            for number, view in zip(part.pointers, views_of(part.problem), strict=True):
                found.setdefault(number, _pointer(view, by_rows=True))
        return tuple(found[number] for number in sorted(found))
    leaves: dict[int, Pointer] = {}
    moved = [(leaf, _pointer(leaf.view, by_rows=by_rows)) for leaf in problem.value.leaves()]
    if isinstance(problem, Reduction) and problem.finish is not None:
        moved += [(leaf, _pointer(leaf.view, by_rows=False)) for leaf in problem.finish.leaves()]
    for leaf, pointer in moved:
        if leaves.setdefault(leaf.pointer, pointer) != pointer:
            return None
    return (_pointer(problem.destination, by_rows=by_rows), *(leaves[number] for number in sorted(leaves)))


def _pointer(view: View, *, by_rows: bool) -> Pointer:
    extent, stride = (view.rows, view.row_stride) if by_rows else (view.cols, view.col_stride)
    return Pointer(view.element, stride if extent > 1 else 0)


def _piece(problem: Cut, size: int, *, by_rows: bool) -> Cut:
    """The problem on `size` rows or columns; what it stores past the caches stays what the whole one would."""
    if isinstance(problem, Copy):
        source, to = (_shorter(view, size, by_rows=by_rows) for view in (problem.source, problem.destination))
        return Copy(source, to, problem.moves)
    if isinstance(problem, Rows):
        parts = tuple(replace(part, problem=cut_rows(part.problem, size)) for part in problem.parts)
        return replace(problem, rows=size, parts=parts)
    value = _shorter_value(problem.value, size, by_rows=by_rows)
    to = _shorter(problem.destination, size, by_rows=by_rows)
    if isinstance(problem, Map):
        return Map(to, value, problem.moves)
    finish = _shorter_value(problem.finish, size, by_rows=False) if problem.finish is not None else None
    return replace(problem, value=value, destination=to, finish=finish)


def _shorter_value(value: Expression, size: int, *, by_rows: bool) -> Expression:
    nodes = tuple(
        replace(node, view=_shorter(node.view, size, by_rows=by_rows)) if isinstance(node, Leaf) else node
        for node in value.nodes
    )
    return Expression(size if by_rows else value.rows, value.cols if by_rows else size, nodes)


def _shorter(view: View, size: int, *, by_rows: bool) -> View:
    """A view of that many rows or columns; one that is repeated stays."""
    if by_rows:
        return replace(view, rows=size) if view.rows > 1 else view
    return replace(view, cols=size) if view.cols > 1 else view
