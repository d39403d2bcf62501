"""Facts about a kernel: the parameters it writes, the values that may differ between work-items, the first writes.

*Divergence.* The checker's `Spread` describes values that certainly differ, which is an error where they must not. This
analysis finds values that may differ: the emitter needs vectors for them (`varying_names`), and `translate` warns of
barriers that some work-items may not reach (`doubtful_barriers`). A result varies if an operand does, or if
the instruction itself depends on the work-item: `subgroup_local_id`, a scan, an atomic update in an SPMD region, the
variables of `foreach`, the entries of `cooperative_matrix_apply`, a component of a cooperative matrix. Results of an
`if` with a varying condition or a `for` with varying bounds vary. Reductions and broadcasts are uniform in a subgroup,
but may differ between the subgroups of a work-group, as their ids do.

*First writes* (`first_writes`): which BLAS outputs in local memory need not be read, and which allocations must be
zeroed because `beta` reads them.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from tlx.diagnostics import Note, TlxWarning, warn
from tlx.frontends.tensor_language.operations.blas import Blas
from tlx.frontends.tensor_language.operations.control import Barrier, For, Foreach, ForeachTile, If, Parallel, Yield
from tlx.frontends.tensor_language.operations.core import entry_of
from tlx.frontends.tensor_language.operations.memory import (
    Alloca,
    Associated,
    AtomicStore,
    AtomicUpdate,
    Expand,
    Fuse,
    Store,
    Subview,
)
from tlx.frontends.tensor_language.operations.scalars import ArithBinary, Constant
from tlx.frontends.tensor_language.operations.subgroups import (
    Builtin,
    CooperativeMatrixApply,
    CooperativeMatrixExtract,
    CooperativeMatrixInsert,
    CooperativeMatrixLoad,
    CooperativeMatrixMulAdd,
    CooperativeMatrixStore,
    SubgroupBroadcast,
    SubgroupOperation,
)
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region
from tlx.frontends.tensor_language.types import CoopMatrixType, Extent, MemrefType, Type
from tlx.frontends.tensor_language.work_items import work_group_sizes


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
    uses = ParameterUses()
    _visit(function.body, {p.name.text: i for i, p in enumerate(function.parameters)}, uses)
    return uses


def _visit(region: Region, roots: dict[str, int], uses: ParameterUses) -> None:
    roots = dict(roots)  # another region may redefine a name
    for instruction in region.instructions:
        viewed = _operand(instruction, entry_of(type(instruction)).views)
        if viewed is not None and viewed.text in roots:
            roots[instruction.result.text] = roots[viewed.text]
        target = written_operand(instruction)
        if target is not None and target.text in roots:
            uses.written.add(roots[target.text])
        if isinstance(instruction, Associated) and instruction.operand.text in roots:
            uses.tested.add(roots[instruction.operand.text])
        for inner in instruction.regions():
            _visit(inner, roots, uses)


def written_operand(instruction: Instruction) -> Name | None:
    """The memref whose memory an instruction changes; None for instructions that change none."""
    return _operand(instruction, entry_of(type(instruction)).writes)


def _operand(instruction: Instruction, field: str | None) -> Name | None:
    return None if field is None else getattr(instruction, field)


def varying_names(function: Function) -> frozenset[int]:
    """Ids of the defining `Name`s of values that may vary within a subgroup."""
    analysis = _DivergenceAnalysis("subgroup", masked=True)
    analysis.region(function.body)
    return frozenset(analysis.varying)


@dataclass(frozen=True, slots=True)
class MatrixUses:
    """How a kernel uses cooperative matrices.

    Attributes:
        by_components: Types of matrices of which it can tell which entries each work-item holds: it reads or writes
            components by their numbers, or combines entries with what differs between work-items.
        copied: Types of matrices that it only loads and stores.
        multiplied: Types of matrices that it only loads and multiplies.
    """

    by_components: frozenset[CoopMatrixType]
    copied: frozenset[CoopMatrixType]
    multiplied: frozenset[CoopMatrixType]


def matrix_uses(function: Function, varying: frozenset[int]) -> MatrixUses:
    """How a kernel uses cooperative matrices.

    Args:
        function: The kernel, which has been checked.
        varying: Its `varying_names`.
    """
    analysis = _MatrixAnalysis(varying)
    analysis.region(function.body, {})
    return MatrixUses(
        by_components=frozenset(analysis.by_components),
        copied=frozenset(analysis.known - analysis.not_copied),
        multiplied=frozenset(analysis.known - analysis.not_multiplied),
    )


@dataclass(frozen=True, slots=True)
class _NameFacts:
    """What is known of a name: the type of the matrix that it is, and whether it may vary."""

    type: CoopMatrixType | None
    varies: bool


class _MatrixAnalysis:
    def __init__(self, varying: frozenset[int]) -> None:
        self.by_components: set[CoopMatrixType] = set()
        self.known: set[CoopMatrixType] = set()
        self.not_copied: set[CoopMatrixType] = set()
        self.not_multiplied: set[CoopMatrixType] = set()
        self._varying = varying

    def region(self, region: Region, outside: Mapping[str, _NameFacts]) -> None:
        """Visit a region."""
        scope = dict(outside)
        for i in region.instructions:
            if isinstance(i, CooperativeMatrixExtract | CooperativeMatrixInsert | CooperativeMatrixApply):
                of_matrix = scope[i.matrix.text].type
                assert of_matrix is not None
                if not isinstance(i, CooperativeMatrixApply) or self._depends_on_work_item(i.body, scope):
                    self.by_components.add(of_matrix)
            results = {reference.type for reference in i.types if isinstance(reference.type, CoopMatrixType)}
            self.known |= results
            types = results | {known.type for name in i.operands() if (known := scope.get(name.text)) and known.type}
            self._use(i, types, scope)
            inner = dict(scope)
            if isinstance(i, For):
                inner |= self._known(i.carried, [reference.type for reference in i.types])
            for body in i.regions():
                self.region(body, inner | self._known(_variables(i), []))
            scope |= self._known(i.results, [reference.type for reference in i.types])

    def _use(self, i: Instruction, types: set[CoopMatrixType], scope: Mapping[str, _NameFacts]) -> None:
        """Note how an instruction uses matrices of some types."""
        match i:
            case For() | If() | Yield():
                return
            case CooperativeMatrixLoad():
                self.not_copied |= types if i.atomic or i.transpose == "t" else set()
            case CooperativeMatrixStore():
                self.not_copied |= types if i.atomic or i.transpose == "t" else set()
                self.not_multiplied |= types
            case CooperativeMatrixMulAdd():
                self.not_copied |= types
                self.not_multiplied |= types - {scope[name.text].type for name in (i.a, i.b)}
            case _:
                self.not_copied |= types
                self.not_multiplied |= types

    def _known(self, names: Sequence[Name], types: Sequence[Type]) -> dict[str, _NameFacts]:
        matrices = [type_ if isinstance(type_, CoopMatrixType) else None for type_ in types]
        matrices += [None] * (len(names) - len(matrices))
        return {n.text: _NameFacts(m, id(n) in self._varying) for n, m in zip(names, matrices, strict=True)}

    def _depends_on_work_item(self, region: Region, outside: Mapping[str, _NameFacts]) -> bool:
        """Whether a region reads a name from outside that may vary, or depends on the work-item itself."""
        scope = dict(outside)
        for i in region.instructions:
            if isinstance(i, AtomicUpdate | SubgroupBroadcast | SubgroupOperation) or (
                isinstance(i, Builtin) and i.name == "subgroup_local_id"
            ):
                return True
            if any(name.text in scope and scope[name.text].varies for name in i.operands()):
                return True
            inner = dict(scope)
            for name in (*_variables(i), *(i.carried if isinstance(i, For) else ())):
                inner.pop(name.text, None)
            if any(self._depends_on_work_item(body, inner) for body in i.regions()):
                return True
            for name in i.results:
                scope.pop(name.text, None)
        return False


def _variables(i: Instruction) -> tuple[Name, ...]:
    """The names that an instruction defines in its region, but for values carried by a loop."""
    match i:
        case For():
            return (i.variable,)
        case Foreach():
            return i.variables
        case ForeachTile():
            return (*i.variables, *i.sizes)
        case CooperativeMatrixApply():
            return i.row, i.column, i.value_name
        case _:
            return ()


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


def output_operand(i: Blas) -> Name:
    """The operand that a BLAS instruction writes."""
    name = written_operand(i)
    assert name is not None
    return name


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
                        self._write(inner.target, is_all=True)
            case Parallel():
                self.region(i.body)
            case Blas():
                self._blas(i)
            case ForeachTile():
                self._loop(i, makes_trips=self._makes_trips(i.starts, i.stops))
            case CooperativeMatrixApply():
                self._loop(i, makes_trips=True)
            case _:
                target = written_operand(i)
                if target is not None:
                    self._write(target, is_all=self._is_of_all(i))

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

    def _write(self, target: Name, *, is_all: bool) -> None:
        """Record a write to some or all elements of a view."""
        view = self._views.get(target.text)
        if view is not None and self._written[id(view.origin)] != "all":
            self._written[id(view.origin)] = "all" if is_all and view.is_whole else "part"

    def _is_of_all(self, i: Instruction) -> bool:
        """Whether a store writes all elements of its target."""
        match i:
            case Store() | AtomicStore():
                view = self._views.get(i.target.text)
                return view is not None and math.prod(n or 0 for n in view.shape) == 1
            case CooperativeMatrixStore():
                view, matrix = self._views.get(i.target.text), self._matrices.get(i.matrix.text)
                if view is None or matrix is None or (self._constant(i.x), self._constant(i.y)) != (0, 0):
                    return False
                lines = (matrix.rows, matrix.columns) if i.transpose == "n" else (matrix.columns, matrix.rows)
                return view.shape == lines
            case _:
                return False

    def _visits_all(self, i: Foreach, store: Store | AtomicStore) -> bool:
        """Whether a store in a `foreach` is indexed by its variables, and their ranges cover the view."""
        view = self._views.get(store.target.text)
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
