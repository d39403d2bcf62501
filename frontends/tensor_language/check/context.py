"""What the rules share: the names that are visible, the region they look at, and the errors found so far.

Names live in one dictionary. No name of an enclosing region may be defined again, so a region that closes takes its own
names out and nothing comes back into sight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tlx.diagnostics import Note, Span
from tlx.frontends.tensor_language.analysis import DEFAULT_SUBGROUP_SIZE
from tlx.frontends.tensor_language.check.types import type_problem
from tlx.frontends.tensor_language.check.uniformity import UNIFORM, Spread
from tlx.frontends.tensor_language.errors import Reports, counted
from tlx.frontends.tensor_language.operations.core import RegionKind, mnemonic, operation_of
from tlx.frontends.tensor_language.syntax.annotations import field_problem
from tlx.frontends.tensor_language.syntax.cursor import Results
from tlx.frontends.tensor_language.syntax.nodes import Function, Instruction, Name, Region, TypeRef
from tlx.frontends.tensor_language.types import ScalarType, Type

_COUNTS: Final[dict[Results, int | None]] = {"none": 0, "one": 1, "many": None}
DEEPEST: Final = 200  # regions inside each other; a parser stops earlier, a program that builds trees may not


@dataclass(slots=True)
class Value:
    """A local variable.

    Attributes:
        name: Where it is defined.
        type: None where an error left it unknown; rules are silent about such operands.
        origin: The instruction that gives it, None for parameters and variables of loops.
        spread: What is known of it over the work-items of a subgroup.
    """

    name: Name
    type: Type | None
    origin: Instruction | None = None
    spread: Spread | None = None


@dataclass(slots=True)
class Frame:
    """An open region.

    Attributes:
        kind: Whether it is a collective or an SPMD region.
        owner: The instruction it belongs to, None for the body of a function.
        yields: Types that the region must yield, None where `yield` has no place.
        converged: Whether all work-items certainly run it together.
        distributed: The instruction that hands iterations out to work-items, if there is one around.
        divergent: What certainly lets some work-items enter it and others not.
        defined: Names to take out of sight at the end.
        last: Its last instruction.
    """

    kind: RegionKind
    owner: Instruction | None = None
    yields: tuple[Type | None, ...] | None = None
    converged: bool = True
    distributed: Instruction | None = None
    divergent: Value | None = None
    defined: list[str] = field(default_factory=list[str])
    last: Instruction | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """How an instruction is checked.

    Attributes:
        check: Reports what is wrong with an instruction; opens its regions.
        spread: What is known of its result in an SPMD region, asked after `check`.
    """

    check: Callable[[Context, Any], None]
    spread: Callable[[Context, Any], Spread | None] | None = None


Rules = Mapping[type[Instruction], Rule]


class Context:
    """State of checking one function.

    Attributes:
        reports: Where errors go.
        subgroup_size: Work-items of a subgroup.
        groups_without_size: Whether nobody passes the sizes of groups.
        wide_factors: Whether alpha and beta are those of version 1; see `attributes.WIDE_FACTORS`.
        frame: The innermost open region.
    """

    def __init__(self, rules: Rules, reports: Reports) -> None:
        self.reports = reports
        self.subgroup_size = DEFAULT_SUBGROUP_SIZE
        self.groups_without_size = False
        self.wide_factors = False
        self.frame = Frame("collective")
        self._rules = rules
        self._visible: dict[str, Value] = {}
        self._closed: dict[str, Name] = {}
        self._depth = 0

    def error(self, message: str, span: Span | None, *notes: Note) -> None:
        """Report what is wrong at a place."""
        self.reports.add(message, span, *notes)

    def define(
        self, name: Name, type_: Type | None, origin: Instruction | None = None, spread: Spread | None = UNIFORM
    ) -> None:
        """Bind a name in the region that is open; its type is unknown where it is written wrongly."""
        if type_ is not None and type_problem(type_) is not None:
            type_ = None  # said where the type is written
        before = self._visible.get(name.text)
        if before is None:
            self._visible[name.text] = Value(name, type_, origin, spread)
            self.frame.defined.append(name.text)
            return
        if before.name is _UNKNOWN:  # used above, where that was reported
            self._visible[name.text] = Value(name, type_, origin, spread)
            return
        self.error(
            f"{name} is already defined, and a name that is visible cannot be defined again: choose another name",
            name.span,
            Note("declared here", before.name.span),
        )
        if before.type != type_:
            before.type = None
        before.origin, before.spread = None, None

    def value(self, name: Name) -> Value:
        """What a name is bound to; one of unknown type where it is bound to nothing, which is reported once."""
        found = self._visible.get(name.text)
        if found is not None:
            return found
        closed = self._closed.get(name.text)
        visible = [text for text, value in self._visible.items() if value.name is not _UNKNOWN]
        self.reports.undefined(name, None if closed is None else closed.span, visible)
        value = Value(_UNKNOWN, None)
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
            region: What stands in braces.
            owner: Its instruction.
            variables: Names that the instruction binds in the region.
            changes: Attributes of the frame that differ from those of the region around.
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
        if malformed is not None:  # made by a program: no text parses to it
            self.error(f"{type(node).__name__}: {malformed}", node.span)
            for name in node.results:
                self.define(name, None, node, None)
            return
        rule, entry = self._rules[type(node)], operation_of(node)
        if entry.region is not None and entry.region != kind:
            self.wrong_region(node, entry.region)
        wanted = _COUNTS[entry.results]
        if wanted is not None and not (wanted == len(node.results) == len(node.types)):
            self._wrong_results(node, wanted)
            return
        for reference in node.types:
            if type(reference.type) is not ScalarType:
                self.check_type(reference)
        rule.check(self, node)
        if not node.results:
            return
        spread = None if kind == "spmd" else UNIFORM
        if rule.spread is not None:
            spread = rule.spread(self, node) or spread
        types = (*(r.type for r in node.types), *[None] * len(node.results))
        for name, type_ in zip(node.results, types, strict=False):
            self.define(name, type_, node, spread)

    def check_type(self, reference: TypeRef) -> None:
        """Report what is no type of the language."""
        message = type_problem(reference.type)
        if message:
            self.error(f"{reference}: {message}", reference.span)

    def wrong_region(self, node: Instruction, wanted: RegionKind) -> None:
        """Report an instruction of the other kind of region."""
        owner = self.frame.owner
        notes = () if owner is None else (Note("the region belongs to this instruction", owner.span),)
        if wanted == "collective":
            hint = "is collective and cannot stand in an SPMD region: move it out of parallel, foreach, foreach_tile"
        else:
            hint = "is an SPMD instruction and cannot stand in a collective region: put it into parallel { ... }"
        self.error(f"{mnemonic(node)} {hint}", node.span, *notes)

    def _wrong_results(self, node: Instruction, wanted: int) -> None:
        gives = "one result of one type" if wanted else "no result"
        got = f"{counted(len(node.results), 'name')} and {counted(len(node.types), 'type')}"
        self.error(f"{mnemonic(node)} gives {gives}, but it is written with {got}", node.span)
        for name in node.results:
            self.define(name, None, node, None)


def types_of(references: tuple[TypeRef, ...]) -> tuple[Type | None, ...]:
    """The types that references name."""
    return tuple(r.type for r in references)


_UNKNOWN: Final = Name("")
