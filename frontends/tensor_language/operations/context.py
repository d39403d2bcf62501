"""What the rules share: valid types, visible names, the open region, and operands of the kind that a rule requires.

Names live in one dictionary. A name of an enclosing region cannot be defined again, so a region that closes only
removes its own names. An operand of the wrong kind is reported and gives None; so does, without another error, an
operand whose type an earlier error left unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

from tlx.diagnostics import Note, Span, counted
from tlx.frontends.tensor_language.errors import Reports
from tlx.frontends.tensor_language.operations.core import RegionKind, mnemonic, operation_of, rules_of
from tlx.frontends.tensor_language.syntax.annotations import field_problem
from tlx.frontends.tensor_language.syntax.cursor import Results
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region, TypeRef
from tlx.frontends.tensor_language.types import (
    INDEX,
    MAX_INTEGER,
    CoopMatrixType,
    Extent,
    GroupType,
    MatrixUse,
    MemrefType,
    ScalarType,
    Type,
    extent_text,
    is_language_type,
)
from tlx.frontends.tensor_language.work_items import DEFAULT_SUBGROUP_SIZE, UNIFORM, Spread

_Type = TypeVar("_Type", bound=Type)


@lru_cache(maxsize=4096)
def type_problem(type_: Type) -> str | None:
    """Why a type is invalid, None for a valid type."""
    if malformed := field_problem(type_):
        return malformed
    scalar = type_.component if isinstance(type_, CoopMatrixType) else _element(type_)
    if not is_language_type(scalar):
        return f"there is no type {scalar}"
    if isinstance(type_, MemrefType):
        return _of_memref(type_)
    if isinstance(type_, GroupType):
        return _of_group(type_)
    return _of_matrix(type_) if isinstance(type_, CoopMatrixType) else None


def _element(type_: ScalarType | MemrefType | GroupType) -> ScalarType:
    if isinstance(type_, ScalarType):
        return type_
    return type_.element if isinstance(type_, MemrefType) else type_.memref.element


def _of_memref(type_: MemrefType) -> str | None:
    if not type_.element.is_number:
        return f"elements of a memref must be numbers, not {type_.element}"
    bad = next((e for e in type_.shape if e is not None and e < 1), None)
    if bad is not None:
        return f"extents of a memref must be at least 1, but one is {bad}: write ? for what is known when it runs"
    if len(type_.stride) != type_.order:
        return f"strided<> needs an entry for each of the {type_.order} modes, but has {len(type_.stride)}"
    return _of_strides(type_) or _of_size(type_)


def _of_strides(type_: MemrefType) -> str | None:
    for mode, stride in enumerate(type_.stride):
        if stride is not None and stride < 1:
            return f"strides must be at least 1, but that of mode {mode} is {stride}"
        if mode == 0:
            continue
        before, extent = type_.stride[mode - 1], type_.shape[mode - 1]
        if None not in {before, extent, stride} and (before or 0) * (extent or 0) > (stride or 0):
            return (
                f"the stride of mode {mode} must be at least stride times extent of mode {mode - 1}, "
                f"{extent_text(before)} * {extent_text(extent)} = {(before or 0) * (extent or 0)}, but it is {stride}"
            )
    return None


def _of_size(type_: MemrefType) -> str | None:
    """Offsets have 64 bits."""
    last = 0
    for extent, stride in zip(type_.shape, type_.stride, strict=True):
        if extent is not None and stride is not None:
            last += (extent - 1) * stride
    if (last + 1) * type_.element.size > MAX_INTEGER:
        return "a memref must be smaller than 2^63 bytes"
    return None


def _of_group(type_: GroupType) -> str | None:
    if type_.size is not None and type_.size < 1:
        return f"a group must have at least 1 member, but its size is {type_.size}"
    if type_.offset is not None and type_.offset < 0:
        return f"the offset of a group must not be negative, but it is {type_.offset}"
    if type_.memref.address_space == "local":
        return "members of a group lie in global memory, not in local memory"
    return type_problem(type_.memref)


def _of_matrix(type_: CoopMatrixType) -> str | None:
    if not type_.component.is_number:
        return f"components of a coopmatrix must be numbers, not {type_.component}"
    if type_.rows < 1 or type_.columns < 1:
        return f"extents of a coopmatrix must be at least 1, but it has {type_.rows} rows and {type_.columns} columns"
    return None


_PACKAGE: Final = "tlx.frontends.tensor_language.operations"
_COUNTS: Final[dict[Results, int | None]] = {"none": 0, "one": 1, "many": None}
DEEPEST: Final = 200  # nested regions; the parser has a lower limit, but programs can build trees, too


@dataclass(slots=True)
class LocalVariable:
    """A local variable.

    Attributes:
        name: Where it is defined.
        type: None where an error left it unknown; rules are silent about such operands.
        origin: The instruction that defines it, None for parameters and variables of loops.
        spread: How it differs between the work-items of a subgroup, as far as that is known.
    """

    name: Name
    type: Type | None
    origin: Instruction | None = None
    spread: Spread | None = None

    def note(self) -> Note:
        """A note that points to the definition and shows the type."""
        return Note(f"declared here: {self.name} is {self.type}", self.name.span)


@dataclass(slots=True)
class OpenRegion:
    """An open region.

    Attributes:
        kind: Whether it is a collective or an SPMD region.
        owner: The instruction it belongs to, None for the body of a function.
        yields: Types that the region must yield, None where `yield` has no place.
        converged: Whether all work-items certainly run it together.
        distributed: The enclosing instruction that distributes iterations over work-items, if any.
        divergent: A value because of which some work-items certainly enter it and others do not.
        defined: Names whose scope ends with it.
        last: Its last instruction.
    """

    kind: RegionKind
    owner: Instruction | None = None
    yields: tuple[Type | None, ...] | None = None
    converged: bool = True
    distributed: Instruction | None = None
    divergent: LocalVariable | None = None
    defined: list[str] = field(default_factory=list[str])
    last: Instruction | None = None


@dataclass(frozen=True, slots=True)
class ExtentOperand:
    """An extent that must be equal to another.

    Attributes:
        name: The operand that has it.
        text: What messages call it, such as `rows(%A)`.
        extent: The extent.
    """

    name: Name
    text: str
    extent: Extent


class FunctionCheck:
    """State of checking one function.

    Attributes:
        reports: Where errors go.
        subgroup_size: Work-items of a subgroup.
        groups_without_size: Whether the sizes of groups are not passed to the kernel.
        wide_factors: Whether alpha and beta follow the rules of version 1; see `nodes.WIDE_FACTORS`.
        frame: The innermost open region.
    """

    def __init__(self, reports: Reports) -> None:
        self.reports = reports
        self.subgroup_size = DEFAULT_SUBGROUP_SIZE
        self.groups_without_size = False
        self.wide_factors = False
        self.frame = OpenRegion("collective")
        self._checks = rules_of(_PACKAGE)
        self._spreads = rules_of(_PACKAGE, "Spread | None")
        self._visible: dict[str, LocalVariable] = {}
        self._closed: dict[str, Name] = {}
        self._depth = 0

    def error(self, message: str, span: Span | None, *notes: Note) -> None:
        """Report an error at a place."""
        self.reports.add(message, span, *notes)

    def define(
        self, name: Name, type_: Type | None, origin: Instruction | None = None, spread: Spread | None = UNIFORM
    ) -> None:
        """Define a name in the open region; its type is unknown if it is written wrongly."""
        if type_ is not None and type_problem(type_) is not None:
            type_ = None  # reported where the type is written
        before = self._visible.get(name.text)
        if before is None:
            self._visible[name.text] = LocalVariable(name, type_, origin, spread)
            self.frame.defined.append(name.text)
            return
        if before.name is _UNKNOWN:  # used above, where that was reported
            self._visible[name.text] = LocalVariable(name, type_, origin, spread)
            return
        self.error(
            f"{name} is already defined, and a name that is visible cannot be defined again: choose another name",
            name.span,
            Note("declared here", before.name.span),
        )
        if before.type != type_:
            before.type = None
        before.origin, before.spread = None, None

    def value(self, name: Name) -> LocalVariable:
        """The value of a name; an undefined name is reported once and has a value of unknown type."""
        value = self._visible.get(name.text)
        if value is not None:
            return value
        closed = self._closed.get(name.text)
        visible = [text for text, value in self._visible.items() if value.name is not _UNKNOWN]
        self.reports.undefined(name, None if closed is None else closed.span, visible)
        value = LocalVariable(_UNKNOWN, None)
        self._visible[name.text] = value
        self.frame.defined.append(name.text)
        return value

    def run(self, function: Function) -> None:
        """Check the body of a function, parameters being defined."""
        self._instructions(function.body)

    def region(
        self,
        region: Region,
        owner: Instruction,
        *,
        variables: Iterable[tuple[Name, Type | None, Spread | None]] = (),
        **changes: Any,
    ) -> None:
        """Check a region of an instruction.

        Args:
            region: The region.
            owner: Its instruction.
            variables: Names that the instruction binds in the region.
            changes: Attributes of the frame that differ from those of the enclosing region.
        """
        if self._depth == DEEPEST:
            self.error(f"regions are nested more than {DEEPEST} deep: move parts into functions", owner.span)
            return
        outer = self.frame
        own: dict[str, Any] = {"owner": owner, "yields": None, "defined": [], **changes}
        self.frame = replace(outer, **own)
        self._depth += 1
        for name, type_, spread in variables:
            self.define(name, type_, None, spread)
        self._instructions(region)
        self._close()
        self._depth -= 1
        self.frame = outer

    def _close(self) -> None:
        for text in self.frame.defined:
            value = self._visible.pop(text)
            if value.name is not _UNKNOWN:
                self._closed[text] = value.name

    def _instructions(self, region: Region) -> None:
        frame = self.frame
        frame.last = region.instructions[-1] if region.instructions else None
        for node in region.instructions:
            self.instruction(node)

    def instruction(self, node: Instruction) -> None:
        """Check an instruction and its regions, and bind its results."""
        kind = self.frame.kind
        malformed = field_problem(node)
        if malformed is not None:  # built by a program; the parser never produces it
            self.error(f"{type(node).__name__}: {malformed}", node.span)
            for name in node.results:
                self.define(name, None, node, None)
            return
        entry = operation_of(node)
        if entry.region is not None and entry.region != kind:
            self.wrong_region(node, entry.region)
        results = _COUNTS[entry.results]
        if results is not None and not (results == len(node.results) == len(node.types)):
            self._wrong_results(node, results)
            return
        for reference in node.types:
            if type(reference.type) is not ScalarType:
                self.check_type(reference)
        self._checks[type(node)](self, node)
        if not node.results:
            return
        spread = None if kind == "spmd" else UNIFORM
        if type(node) in self._spreads:
            spread = self._spreads[type(node)](self, node) or spread
        types = (*(r.type for r in node.types), *[None] * len(node.results))
        for name, type_ in zip(node.results, types, strict=False):
            self.define(name, type_, node, spread)

    def result_type(self, node: Instruction) -> Type | None:
        """The type of the result that follows from the operands."""
        return operation_of(node).gives(node, lambda name: self.value(name).type)

    def check_type(self, reference: TypeRef) -> None:
        """Report an invalid type."""
        message = type_problem(reference.type)
        if message:
            self.error(f"{reference}: {message}", reference.span)

    def wrong_region(self, node: Instruction, required: RegionKind) -> None:
        """Report an instruction of the other kind of region."""
        owner = self.frame.owner
        notes = () if owner is None else (Note("the region belongs to this instruction", owner.span),)
        if required == "collective":
            hint = "is collective and cannot be in an SPMD region: move it out of parallel, foreach, foreach_tile"
        else:
            hint = "is an SPMD instruction and cannot be in a collective region: put it into parallel { ... }"
        self.error(f"{mnemonic(node)} {hint}", node.span, *notes)

    def _wrong_results(self, node: Instruction, expected: int) -> None:
        gives = "one result of one type" if expected else "no result"
        got = f"{counted(len(node.results), 'name')} and {counted(len(node.types), 'type')}"
        self.error(f"{mnemonic(node)} gives {gives}, but it is written with {got}", node.span)
        for name in node.results:
            self.define(name, None, node, None)

    def notes(self, *names: Name) -> list[Note]:
        """Notes that point to the definitions of operands."""
        return [value.note() for name in names if (value := self.value(name)).type is not None]

    def report_operand(self, node: Instruction, at: Name, message: str, *others: Name) -> None:
        """Report an operand, with notes at its definition and at those of the operands that it does not match."""
        names = others if at in others else (*others, at)
        self.error(f"{mnemonic(node)}: {message}", at.span, *self.notes(*names))

    def report_wrong_kind(self, node: Instruction, value: LocalVariable, name: Name, expected: str) -> None:
        """Report an operand of the wrong kind."""
        if value.type is not None:
            self.error(f"{mnemonic(node)}: {name} must be {expected}, but it is {value.type}", name.span, value.note())

    def memref(self, node: Instruction, name: Name) -> MemrefType | None:
        """A memref."""
        is_group = isinstance(self.value(name).type, GroupType)
        return self._operand(node, name, "a memref" + is_group * " (load it from the group first)", MemrefType)

    def memref_or_group(self, node: Instruction, name: Name) -> MemrefType | GroupType | None:
        """A memref or a group of memrefs."""
        return self._operand(node, name, "a memref or a group", MemrefType, GroupType)

    def number(self, node: Instruction, name: Name) -> ScalarType | None:
        """A scalar of any type but `bool`."""
        return self._operand(node, name, "a number", ScalarType, accepts=lambda type_: type_.is_number)

    def integer(self, node: Instruction, name: Name) -> ScalarType | None:
        """A scalar of an integer type."""
        return self._operand(node, name, "an integer", ScalarType, accepts=lambda type_: type_.kind == "int")

    def scalar_or_matrix(self, node: Instruction, name: Name) -> ScalarType | CoopMatrixType | None:
        """An operand of arithmetic."""
        return self._operand(node, name, "a scalar or a coopmatrix", ScalarType, CoopMatrixType)

    def matrix(self, node: Instruction, name: Name, use: MatrixUse | None = None) -> CoopMatrixType | None:
        """A cooperative matrix."""
        expected = f"a coopmatrix of use {use}" if use else "a coopmatrix"
        return self._operand(node, name, expected, CoopMatrixType, accepts=lambda type_: use in (None, type_.use))

    def _operand(
        self,
        node: Instruction,
        name: Name,
        expected: str,
        *classes: type[_Type],
        accepts: Callable[[_Type], bool] = lambda _: True,
    ) -> _Type | None:
        """The type of an operand that must be of certain classes; None if it is not, which is reported."""
        value = self.value(name)
        if isinstance(value.type, classes) and accepts(value.type):
            return value.type
        return self.report_wrong_kind(node, value, name, expected)

    def check_operand_type(self, node: Instruction, name: Name, type_: Type) -> None:
        """An operand of one certain type."""
        value = self.value(name)
        if value.type != type_:
            self.report_wrong_kind(node, value, name, f"of type {type_}")

    def check_indices(self, node: Instruction, names: Iterable[Name], role: str = "an index of type index") -> None:
        """Positions in memory, each of type `index`."""
        for name in names:
            value = self.value(name)
            if value.type != INDEX:
                self.report_wrong_kind(node, value, name, f"{role} (cast it)")

    def constant(self, name: Name) -> bool | int | float | complex | None:
        """The value of an operand that is defined by a `constant` instruction."""
        origin = self.value(name).origin
        field = None if origin is None else operation_of(origin).value
        return None if field is None else getattr(origin, field)

    def check_uniform(self, node: Instruction, *names: Name) -> None:
        """Operands that must be uniform in a subgroup; only those that certainly vary are reported."""
        if not self.frame.converged:
            return
        for name in names:
            value = self.value(name)
            if value.spread is not None and value.spread.varies:
                self.error(
                    f"{mnemonic(node)}: {name} must be dynamically uniform, but it differs between the work-items of a "
                    "subgroup: let subgroup_broadcast choose one of its values",
                    name.span,
                    value.note(),
                )

    def check_equal_extents(
        self, node: Instruction, left: ExtentOperand, right: ExtentOperand, what: str = "the extents"
    ) -> None:
        """Check that two extents are equal, or both `?`; the error points to the second."""
        if left.extent == right.extent:
            return
        sides = f"{left.text} = {extent_text(left.extent)} but {right.text} = {extent_text(right.extent)}"
        message = f"{sides}; {what} must be equal"
        if None in {left.extent, right.extent}:
            message += ", or both ? (subview or an argument's type can change one)"
        self.report_operand(node, right.name, message, left.name)

    def check_result(self, node: Instruction, reason: str) -> None:
        """The type of the one result follows from the operands, which are of the right kind."""
        reference: TypeRef = node.types[0]
        expected = self.result_type(node)
        if reference.type != expected:
            self.error(f"{mnemonic(node)}: the result must be {expected}, {reason}, not {reference}", reference.span)


def types_of(references: tuple[TypeRef, ...]) -> tuple[Type | None, ...]:
    """The types that references name."""
    return tuple(r.type for r in references)


_UNKNOWN: Final = Name("")
