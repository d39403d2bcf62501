"""What a kernel does with its parameters and with cooperative matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tlx.frontends.tensor_language.operations.blas import Blas
from tlx.frontends.tensor_language.operations.control import For, Foreach, ForeachTile, If, Yield
from tlx.frontends.tensor_language.operations.core import entry_of
from tlx.frontends.tensor_language.operations.memory import (
    Associated,
    AtomicUpdate,
)
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
from tlx.frontends.tensor_language.types import CoopMatrixType, Type


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
        destination = written_operand(instruction)
        if destination is not None and destination.text in roots:
            uses.written.add(roots[destination.text])
        if isinstance(instruction, Associated) and instruction.operand.text in roots:
            uses.tested.add(roots[instruction.operand.text])
        for inner in instruction.regions():
            _visit(inner, roots, uses)


def written_operand(instruction: Instruction) -> Name | None:
    """The memref whose memory an instruction changes; None for instructions that change none."""
    return _operand(instruction, entry_of(type(instruction)).writes)


def _operand(instruction: Instruction, field: str | None) -> Name | None:
    return None if field is None else getattr(instruction, field)


def output_operand(i: Blas) -> Name:
    """The operand that a BLAS instruction writes."""
    name = written_operand(i)
    assert name is not None
    return name


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
                inner |= self._name_facts(i.carried, [reference.type for reference in i.types])
            for body in i.regions():
                self.region(body, inner | self._name_facts(_variables(i), []))
            scope |= self._name_facts(i.results, [reference.type for reference in i.types])

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

    def _name_facts(self, names: Sequence[Name], types: Sequence[Type]) -> dict[str, _NameFacts]:
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
