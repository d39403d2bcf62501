"""First writes: which BLAS outputs in local memory need not be read, and which allocations must be zeroed.

    %t = alloca : memref<f32x8x8,local>
    gemm %one, %A, %B, %zero, %t            is the first write to %t: beta constant 0 need not read it
    gemm %one, %A, %B, %one, %t             reads %t after all of it has been written

An alloca is zeroed only if `beta` may read an element that has not been written. A forward analysis tracks whether
nothing, a part or all of the memory has been written since the `alloca` ran; a write in one arm of an `if`, or in a
loop that may not run, counts as a part. A write covers all elements if it is

    - a collective instruction whose output is the memref or a view of all of it,
    - `store %x, %t[%i,%j]` in a `foreach (%i,%j)=(0,0),(8,8)`, whose ranges are constants and those of the memref,
    - `cooperative_matrix_store` of a matrix of the memref's shape at its origin, or `store` to the one element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tlx.frontends.tensor_language.analysis.uses import output_operand, written_operand
from tlx.frontends.tensor_language.operations.blas import Blas
from tlx.frontends.tensor_language.operations.control import For, Foreach, ForeachTile, If, Parallel
from tlx.frontends.tensor_language.operations.memory import (
    Alloca,
    AtomicStore,
    Expand,
    Fuse,
    Store,
    Subview,
)
from tlx.frontends.tensor_language.operations.scalars import Constant
from tlx.frontends.tensor_language.operations.subgroups import (
    CooperativeMatrixApply,
    CooperativeMatrixStore,
)
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region
from tlx.frontends.tensor_language.types import CoopMatrixType, Extent, MemrefType

_FAST_BETA: Final = "fast_beta"  # a quoted attribute, as it is not part of the language

Written = Literal["nothing", "part", "all"]


@dataclass(frozen=True, slots=True)
class FirstWrites:
    """Outputs that the emitter need not read, and allocations that it has to zero.

    Attributes:
        unread: Ids of the BLAS instructions whose output need not be read if `beta` is 0.
        zeroed: Ids of the `alloca`s that are zeroed.
    """

    unread: frozenset[int]
    zeroed: frozenset[int]


def first_writes(function: Function) -> FirstWrites:
    """Follow the memory of each `alloca` through a kernel."""
    analysis = _WriteAnalysis(_has_fast_beta(function))
    analysis.region(function.body)
    return FirstWrites(frozenset(analysis.unread), frozenset(analysis.zeroed))


def _has_fast_beta(function: Function) -> bool:
    """Whether a function promises that outputs need not be read if `beta` is the constant 0."""
    entries = function.attributes.entries
    return any(a.quoted and a.name == _FAST_BETA and a.value.value is True for a in entries)


@dataclass(frozen=True, slots=True)
class _AllocaAlias:
    """A name for memory of an `alloca`.

    Attributes:
        origin: The `alloca`.
        shape: Extents of the view.
        is_whole: Whether it has all elements.
    """

    origin: Alloca
    shape: tuple[Extent, ...]
    is_whole: bool


class _WriteAnalysis:
    def __init__(self, fast_beta: bool) -> None:
        self.unread: set[int] = set()
        self.zeroed: set[int] = set()
        self._fast_beta = fast_beta
        self._views: dict[str, _AllocaAlias] = {}
        self._constants: dict[str, bool | int | float | complex] = {}
        self._matrices: dict[str, CoopMatrixType] = {}
        self._written: dict[int, Written] = {}
        self._only_writes = False

    def region(self, region: Region) -> None:
        """Visit the instructions of a region; its definitions go out of scope at its end."""
        before = self._views, self._constants, self._matrices
        self._views, self._constants, self._matrices = dict(before[0]), dict(before[1]), dict(before[2])
        for i in region.instructions:
            for name, reference in zip(i.results, i.types, strict=True):
                self._views.pop(name.text, None)
                self._constants.pop(name.text, None)
                if isinstance(reference.type, CoopMatrixType):
                    self._matrices[name.text] = reference.type
            self._instruction(i)
        self._views, self._constants, self._matrices = before

    def _instruction(self, i: Instruction) -> None:
        match i:
            case Constant():
                self._constants[i.result.text] = i.value
            case Alloca():
                self._written[id(i)] = "nothing"
                self._views[i.result.text] = _AllocaAlias(i, _shape(i), is_whole=True)
            case Subview() | Expand() | Fuse():
                self._view(i)
            case If():
                self._if(i)
            case For():
                self._loop(i, makes_trips=self._makes_trips((i.start,), (i.stop,)))
            case Foreach():
                self._loop(i, makes_trips=self._makes_trips(i.starts, i.stops))
                for inner in i.body.instructions:
                    if isinstance(inner, (Store, AtomicStore)) and self._visits_all(i, inner):
                        self._write(inner.destination, is_all=True)
            case Parallel():
                self.region(i.body)
            case Blas():
                self._blas(i)
            case ForeachTile():
                self._loop(i, makes_trips=self._makes_trips(i.starts, i.stops))
            case CooperativeMatrixApply():
                self._loop(i, makes_trips=True)
            case _:
                destination = written_operand(i)
                if destination is not None:
                    self._write(destination, is_all=self._is_of_all(i))

    # Views -----------------------------------------------------------------------------------------------------

    def _view(self, i: Subview | Expand | Fuse) -> None:
        viewed = self._views.get(i.operand.text)
        if viewed is not None:
            is_whole = viewed.is_whole and self._shows_all(i, viewed.shape)
            self._views[i.result.text] = _AllocaAlias(viewed.origin, _shape(i), is_whole)

    def _shows_all(self, i: Subview | Expand | Fuse, shape: Sequence[Extent]) -> bool:
        """Whether a view covers all of its operand."""
        match i:
            case Subview():
                sizes = [s.size or 1 for s in i.slices]
                starts = [self._constant(s.offset) for s in i.slices]
                return sizes == list(shape) and all(start == 0 for start in starts)
            case Expand():
                extents = [n for n in i.shape if isinstance(n, int)]
                return len(extents) == len(i.shape) and math.prod(extents) == shape[i.mode]
            case Fuse():
                return True

    def _constant(self, operand: int | Name) -> bool | int | float | complex | None:
        return self._constants.get(operand.text) if isinstance(operand, Name) else operand

    # Control flow ----------------------------------------------------------------------------------------------

    def _if(self, i: If) -> None:
        before = dict(self._written)
        self.region(i.then)
        then, self._written = self._written, before
        if i.otherwise is not None:
            self.region(i.otherwise)
        self._written = _either(then, self._written)

    def _loop(self, i: Instruction, *, makes_trips: bool) -> None:
        """A loop: the state at the start of the body merges those before the loop and at the end of the body."""
        before = dict(self._written)
        (body,) = i.regions()
        if not self._only_writes:
            self._only_writes = True
            self.region(body)
            self._only_writes = False
            self._written = _either(before, self._written)
        self.region(body)
        if not makes_trips:
            self._written = _either(before, self._written)

    def _makes_trips(self, starts: Sequence[Name], stops: Sequence[Name]) -> bool:
        pairs = [(self._constant(a), self._constant(b)) for a, b in zip(starts, stops, strict=True)]
        return all(isinstance(a, int) and isinstance(b, int) and a < b for a, b in pairs)

    # Writes ----------------------------------------------------------------------------------------------------

    def _blas(self, i: Blas) -> None:
        if self._fast_beta:
            self.unread.add(id(i))
        view = self._views.get(output_operand(i).text)
        if view is None:
            return
        written = self._written[id(view.origin)]
        inputs = [self._views.get(name.text) for name in (getattr(i, field) for field in i.inputs)]
        is_first = written == "nothing" and not any(v is not None and v.origin is view.origin for v in inputs)
        if not self._only_writes:
            if is_first:
                self.unread.add(id(i))
            if written != "all" and self._reads(i, view, is_first=is_first):
                self.zeroed.add(id(view.origin))
        self._write(output_operand(i), is_all=True)

    def _reads(self, i: Blas, view: _AllocaAlias, *, is_first: bool) -> bool:
        """Whether an instruction reads its output because of `beta`."""
        if self._constant(i.beta) != 0:
            return True
        type_ = view.origin.type
        assert isinstance(type_, MemrefType)
        return not (is_first or self._fast_beta or i.atomic or type_.element.kind == "int")

    def _write(self, destination: Name, *, is_all: bool) -> None:
        """Record a write to some or all elements of a view."""
        view = self._views.get(destination.text)
        if view is not None and self._written[id(view.origin)] != "all":
            self._written[id(view.origin)] = "all" if is_all and view.is_whole else "part"

    def _is_of_all(self, i: Instruction) -> bool:
        """Whether a store writes all elements of its destination."""
        match i:
            case Store() | AtomicStore():
                view = self._views.get(i.destination.text)
                return view is not None and math.prod(n or 0 for n in view.shape) == 1
            case CooperativeMatrixStore():
                view, matrix = self._views.get(i.destination.text), self._matrices.get(i.matrix.text)
                if view is None or matrix is None or (self._constant(i.x), self._constant(i.y)) != (0, 0):
                    return False
                lines = (matrix.rows, matrix.columns) if i.transpose == "n" else (matrix.columns, matrix.rows)
                return view.shape == lines
            case _:
                return False

    def _visits_all(self, i: Foreach, store: Store | AtomicStore) -> bool:
        """Whether a store in a `foreach` is indexed by its variables, and their ranges cover the view."""
        view = self._views.get(store.destination.text)
        ranges = {
            name.text: (self._constant(start), self._constant(stop))
            for name, start, stop in zip(i.variables, i.starts, i.stops, strict=True)
        }
        indices = [name.text for name in store.indices]
        if view is None or sorted(indices) != sorted(ranges):
            return False
        return all(ranges[text] == (0, extent) for text, extent in zip(indices, view.shape, strict=True))


def _shape(i: Instruction) -> tuple[Extent, ...]:
    type_ = i.type
    assert isinstance(type_, MemrefType)
    return type_.shape


def _either(one: dict[int, Written], other: dict[int, Written]) -> dict[int, Written]:
    """The state where two paths join."""
    return {
        key: one.get(key, written) if one.get(key, written) == written else "part" for key, written in other.items()
    }
