"""Entries of the table of operations: an operation's spelling, its parts, and the type of its result.

The checker, in this package, and the emitter, in `emit`, have a rule for each operation: a function whose second
parameter is annotated with the class of its nodes. `rules_of` finds it in any file of the package.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import isfunction
from itertools import product
from types import FunctionType
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, get_args, get_type_hints

from tlx.frontends.tensor_language.errors import listed
from tlx.frontends.tensor_language.syntax.cursor import Cursor, Results
from tlx.frontends.tensor_language.syntax.forms import Piece
from tlx.frontends.tensor_language.syntax.nodes import Instruction, Name
from tlx.frontends.tensor_language.syntax.productions import modifiers
from tlx.frontends.tensor_language.types import CoopMatrixType, GroupType, MemrefType, Type

RegionKind = Literal["collective", "spmd"]
Transpose = Literal["n", "t"]
UpdateOp = Literal["add", "max", "min"]
Scope = Literal["cross_device", "device", "work_group", "subgroup"]
Semantics = Literal["relaxed", "acquire", "release", "acquire_release", "sequentially_consistent"]

UPDATES: Final[tuple[UpdateOp, ...]] = get_args(UpdateOp)

TypeOf = Callable[[Name], Type | None]
"""The type of a name; None where an error left it unknown."""
ResultType = Callable[[Any, TypeOf], Type | None]
"""The type of the result of a node; None where it does not follow, or an operand is of the wrong kind."""

_Node = TypeVar("_Node", bound=Instruction)


@dataclass(frozen=True, slots=True)
class Modifier:
    """A modifier after the name: `.t`.

    Attributes:
        field: The field that it sets.
        words: The words that it may be.
        default: The value of the field without the modifier; False for a flag.
        is_required: Whether one of the words must be given.
        is_named: Whether the operation is called by it in messages.
    """

    field: str
    words: tuple[str, ...]
    default: Any
    is_required: bool = False
    is_named: bool = False

    def value(self, word: str | None) -> Any:
        """The value of the field."""
        return word is not None if self.default is False else self.default if word is None else word

    def is_written(self, node: Instruction) -> bool:
        """Whether it is printed."""
        return getattr(node, self.field) != (None if self.is_required else self.default)

    def text(self, node: Instruction) -> str:
        """`.t`."""
        return f".{self.words[0] if self.default is False else getattr(node, self.field)}"


def flag(field: str, word: str = "") -> Modifier:
    """A flag: a modifier that is present or not."""
    return Modifier(field, (word or field,), default=False)


def transpose(field: str = "transpose") -> Modifier:
    """`.t` or `.n`."""
    return Modifier(field, get_args(Transpose), "n")


MEMORY: Final = (
    Modifier("scope", get_args(Scope), "work_group"),
    Modifier("semantics", get_args(Semantics), "relaxed"),
)


@dataclass(kw_only=True, slots=True)
class AtomicAccess(Instruction):
    """Base of the atomic accesses to memory.

    Attributes:
        scope: Who else can see the access.
        semantics: Its memory order.
    """

    scope: Scope = "work_group"
    semantics: Semantics = "relaxed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the language.

    Attributes:
        node: Class of its nodes in the syntax tree.
        spellings: Its names, each with the fields that it determines.
        pieces: What follows name and modifiers.
        modifiers: The modifiers; None if the first piece reports any.
        results: How many results it has.
        region: The kind of region that it must be in, None for both.
        writes: The field with the memref whose memory it changes.
        views: The field with the memref that its result is a view of.
        value: The field with its result, where that is written in the text.
        gives: The type of the result, where it follows from the operands.
        hint: A hint for messages about an unknown modifier.
    """

    node: type[Instruction]
    spellings: Mapping[str, Mapping[str, Any]]
    pieces: tuple[Piece, ...]
    modifiers: tuple[Modifier, ...] | None = None
    results: Results = "one"
    region: RegionKind | None = None
    writes: str | None = None
    views: str | None = None
    value: str | None = None
    gives: ResultType = lambda _node, _type_of: None
    hint: Callable[[Cursor, str], str] = lambda _c, _word: ""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that its pieces set, in textual order."""
        return tuple(field for piece in self.pieces for field in piece.fields)

    def reader(self) -> Callable[[Cursor], Instruction]:
        """A function that parses the text after the name, which is the keyword of the cursor."""
        slots = self.modifiers or ()
        required = listed([f"'.{w}'" for w in slots[0].words], "or") if slots and slots[0].is_required else None
        defaults = {m.field: m.value(None) for m in slots}
        initial = {name: {**defaults, **fixed} for name, fixed in self.spellings.items()}
        steps = [(p.read, p.fields[0] if len(p.fields) == 1 else None, p.fields) for p in self.pieces]
        node, has_modifiers, words, hint = self.node, self.modifiers is not None, [m.words for m in slots], self.hint

        def read(c: Cursor) -> Instruction:
            values: dict[str, Any] = initial[c.keyword].copy()
            if has_modifiers and c.kinds[c.at] == "modifier":
                modifier_words = modifiers(c, *words, hint=hint)
                values.update((m.field, m.value(word)) for m, word in zip(slots, modifier_words, strict=True))
            elif required:
                raise c.expected(f"{required} after '{c.keyword}'")
            for read_piece, field, fields in steps:
                value = read_piece(c)
                if field is not None:
                    values[field] = value
                elif fields:
                    values.update(zip(fields, value, strict=True))
            return node(**values)

        return read

    def head(self, node: Instruction) -> str:
        """The text of a node up to its first region, without the names of its results."""
        text = "".join(piece.write(_value(node, piece.fields)) for piece in self.pieces)
        space = "" if not text or text.startswith(" ") else " "
        return f"{spelling(node)}{self._modifiers(node)}{space}{text}"

    def _modifiers(self, node: Instruction) -> str:
        slots = self.modifiers or ()
        # If one of several equal slots is written, all are, as the first one is that of A.
        written = {m.words for m in slots if m.is_written(node)}
        return "".join(m.text(node) for m in slots if m.words in written)


def _value(node: Instruction, fields: tuple[str, ...]) -> Any:
    """The value that reading a piece gives."""
    return getattr(node, fields[0]) if len(fields) == 1 else tuple(getattr(node, f) for f in fields)


def always(type_: Type) -> ResultType:
    """A result of one certain type."""
    return lambda _node, _type_of: type_


def same_as(field: str) -> ResultType:
    """A result of the type of an operand."""
    return lambda node, type_of: type_of(getattr(node, field))


def element_of(field: str) -> ResultType:
    """A result that is an element of a memref, a member of a group, or a component of a cooperative matrix."""

    def element(node: Any, type_of: TypeOf) -> Type | None:
        type_ = type_of(getattr(node, field))
        if isinstance(type_, CoopMatrixType):
            return type_.component
        if isinstance(type_, GroupType):
            return type_.memref
        return type_.element if isinstance(type_, MemrefType) else None

    return element


def spelt(pattern: str, **values: tuple[Any, ...]) -> dict[str, dict[str, Any]]:
    """Names of one operation, with the fields that they determine: `spelt("atomic_{op}", op=("add", "max"))`."""
    rows = [dict(zip(values, row, strict=True)) for row in product(*values.values())]
    return {pattern.format(**row): row for row in rows}


class OperationDefaults(TypedDict, total=False):
    """The attributes of `Operation` that have a default."""

    modifiers: tuple[Modifier, ...]
    results: Results
    region: RegionKind
    writes: str
    views: str
    value: str
    gives: ResultType
    hint: Callable[[Cursor, str], str]


def operation(
    spellings: str | Mapping[str, Mapping[str, Any]], *pieces: Piece, **columns: Unpack[OperationDefaults]
) -> Callable[[type[_Node]], type[_Node]]:
    """Enter the class of a node into the table.

    Args:
        spellings: The name of the operation, or its names and the fields that each of them determines.
        pieces: What follows name and modifiers.
        columns: The other attributes of `Operation`.
    """
    names = spelt(spellings) if isinstance(spellings, str) else spellings

    def enter(node: type[_Node]) -> type[_Node]:
        entry = Operation(node=node, spellings=names, pieces=pieces, **columns)
        _, rows = _BY_CLASS.setdefault(node, (tuple(next(iter(names.values()))), {}))
        _ONLY[node] = None if rows else entry
        rows.update((tuple(fixed.values()), (name, entry)) for name, fixed in names.items())
        return node

    return enter


# For each class: the fields that spellings determine, and for each of their values the spelling and its entry.
_Rows = dict[tuple[Any, ...], tuple[str, Operation]]
_BY_CLASS: Final[dict[type[Instruction], tuple[tuple[str, ...], _Rows]]] = {}
_ONLY: Final[dict[type[Instruction], Operation | None]] = {}  # the entry of a class that has only one


def entries(module: str) -> Iterator[tuple[str, Operation]]:
    """The spellings that a module defines, in order, and their entries."""
    for node, (_, rows) in _BY_CLASS.items():
        if node.__module__ == module:
            yield from rows.values()


def entry_of(node: type[Instruction]) -> Operation:
    """An entry of a class of nodes, for columns that are the same in all its entries."""
    return next(iter(_BY_CLASS[node][1].values()))[1]


def operation_of(node: Instruction) -> Operation:
    """The entry of a node."""
    return _ONLY[type(node)] or _row_of(node)[1]


def spelling(node: Instruction) -> str:
    """The name of a node, without modifiers."""
    return _row_of(node)[0]


def _row_of(node: Instruction) -> tuple[str, Operation]:
    fields, rows = _BY_CLASS[type(node)]
    return rows[tuple([getattr(node, field) for field in fields])]


def mnemonic(node: Instruction) -> str:
    """The name of an instruction in messages: without modifiers, but with the component of a builtin."""
    name, entry = _row_of(node)
    named = (m.text(node) for m in entry.modifiers or () if m.is_named and m.is_written(node))
    return f"{name}{''.join(named)}"


@cache
def rules_of(package: str, returns: str = "None") -> Mapping[type[Instruction], Callable[..., Any]]:
    """The rules of all modules of a package and the packages in it, by the class of instructions.

    A rule is a public function `rule(state, instruction: Class) -> None`, or with another return annotation.

    Raises:
        TypeError: Two rules are for one class.
    """
    rules: dict[type[Instruction], Callable[..., Any]] = {}
    for info in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
        for rule in vars(import_module(info.name)).values():
            if not isfunction(rule) or rule.__module__ != info.name or rule.__name__.startswith("_"):
                continue
            for class_ in _classes_of(rule, returns):
                if class_ in rules:
                    raise TypeError(f"{class_.__name__} has the rules {rules[class_]} and {rule}")
                rules[class_] = rule
    return rules


def _classes_of(rule: FunctionType, returns: str) -> Iterator[type[Instruction]]:
    """The classes of instructions that a function is the rule of."""
    if len(rule.__annotations__) == 3 and rule.__annotations__["return"] == returns:
        _, annotation, _ = get_type_hints(rule).values()
        yield from (class_ for class_ in get_args(annotation) or (annotation,) if class_ in _BY_CLASS)
