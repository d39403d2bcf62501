"""Functions: signatures, bodies parsed to instructions, names of values, and their text.

LLVM numbers unnamed values consecutively and requires the numbers in a text to be in that order (before LLVM 20 without
gaps). If the lowering has removed numbered values, `renumber` closes the gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from tlx.diagnostics import Span
from tlx.ir.instructions import Block, Instruction
from tlx.ir.types import FunctionType, Type
from tlx.ir.values import Local

_UNQUOTED: Final = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*")
_LONGEST_STEM: Final = 1000
"""LLVM cuts names of local values after 1024 characters: two that differ only there are one."""


@dataclass(eq=False)
class NameScope:
    """The names that are taken in a function or module; makes fresh ones."""

    taken: set[str] = field(default_factory=set[str])
    _next: dict[str, int] = field(default_factory=dict[str, int])

    def fresh(self, stem: str) -> str:
        """`stem`, or `stem.1`, `stem.2`, ... if that is taken."""
        name = stem = _plain(stem)
        number = self._next.get(stem, 0)
        while name in self.taken:
            number += 1
            name = f"{stem}.{number}"
        self._next[stem] = number
        self.taken.add(name)
        return name


@lru_cache(maxsize=4096)
def _plain(stem: str) -> str:
    """A stem, changed to a name that needs no quotes, with space for a number."""
    stem = stem.strip('"')[:_LONGEST_STEM]
    return stem if _UNQUOTED.fullmatch(stem) else "v" + re.sub(r"[^-a-zA-Z$._0-9]", ".", stem)


_NUMBERED: Final = re.compile(
    r"""(?P<comment>;[^\n]*) | "[^"]*" | %(?P<local>\d+)(?![-a-zA-Z$._0-9])
      | (?<![-a-zA-Z$._0-9"%@!\#])(?P<label>\d+):""",
    re.VERBOSE,
)
_IN_COMMENT: Final = re.compile(r"%(\d+)(?![-a-zA-Z$._0-9])")
_MODULE_USE_LISTS: Final = re.compile(r"(?m)^(?:; uselistorder directives|uselistorder(?:_bb)?\b[^\n]*)\n?")


def changed_numbers(order: Sequence[str]) -> dict[str, str]:
    """The new number of each numbered value; empty if none changes.

    Args:
        order: The numbers of all values without names, in the order LLVM counts them.
    """
    numbers = {old: str(new) for new, old in enumerate(order)}
    return {} if all(old == new for old, new in numbers.items()) else numbers


def renumber(text: str, numbers: Mapping[str, str]) -> str:
    """A text with other numbers for values and blocks, also in its comments."""

    def replace_in_comment(match: re.Match[str]) -> str:
        return f"%{numbers.get(match[1], match[1])}"

    def replace(match: re.Match[str]) -> str:
        local, label, comment = match.group("local", "label", "comment")
        if local is not None:
            return f"%{numbers.get(local, local)}"
        if label is not None:
            return f"{numbers.get(label, label)}:"
        return _IN_COMMENT.sub(replace_in_comment, comment) if comment is not None else match.group()

    return _NUMBERED.sub(replace, text)


def renumber_at(text: str, values: Sequence[tuple[tuple[int, int], str]], numbers: Mapping[str, str]) -> str:
    """An instruction's text with other numbers for its values, given as ((start, end), `%name`)."""
    pieces: list[str] = []
    position = 0
    for (start, end), name in sorted(values):
        new = numbers.get(name[1:])
        if new is not None:
            pieces += [text[position:start], f"%{new}"]
            position = end
    return "".join([*pieces, text[position:]])


def strip_use_lists(footer: str) -> str:
    """The end of a function without its `uselistorder` directives."""
    start = footer.find("uselistorder")
    return footer[:start].replace("; uselistorder directives", "").rstrip() + "\n}"


def strip_module_use_lists(text: str) -> str:
    """A module without the `uselistorder` directives of its top level."""
    return _MODULE_USE_LISTS.sub("", text)


@dataclass(eq=False, slots=True)
class Argument:
    """A parameter of a function: its type, attributes as text, and name."""

    type: Type
    attributes: str
    name: str

    @property
    def value(self) -> Local:
        """The parameter as an operand."""
        return Local(self.type, self.name)


@dataclass(eq=False, slots=True)
class Signature:
    """The signature of a `define` or `declare`.

    Attributes:
        name: Without `@`; quoted names keep their quotes.
        result: Result type.
        result_attributes: Linkage, calling convention and result attributes, as text.
        attributes: What follows the parameter list, as text: attributes, groups, section, metadata.
    """

    name: str
    result: Type
    arguments: list[Argument]
    vararg: bool
    result_attributes: str
    attributes: str

    @property
    def type(self) -> FunctionType:
        """Its function type."""
        return FunctionType(self.result, tuple(a.type for a in self.arguments), self.vararg)


@dataclass(eq=False)
class Function:
    """A `define`, parsed to instructions.

    Attributes:
        header: From the white space before `define` to the opening brace, as text.
        footer: From the last instruction to the closing brace, as text.
        numbered_types: Whether the module has types named by numbers, which are spelled like values.
        facts: Cached results of analyses, by their class; each analysis checks whether its result is still valid.
    """

    signature: Signature
    header: str
    blocks: list[Block]
    footer: str = "\n}"
    span: Span | None = None
    names: NameScope = field(default_factory=NameScope)
    numbered_types: bool = False
    facts: dict[type, object] = field(default_factory=dict[type, object], repr=False)

    @property
    def name(self) -> str:
        """Name without `@`."""
        return self.signature.name

    @property
    def arguments(self) -> list[Argument]:
        """Its parameters."""
        return self.signature.arguments

    @property
    def entry(self) -> Block:
        """The entry block."""
        return self.blocks[0]

    def instructions(self) -> Iterator[Instruction]:
        """All instructions in order."""
        for block in self.blocks:
            yield from block.instructions

    def block(self, name: str) -> Block:
        """The block of that name.

        Raises:
            KeyError: There is none.
        """
        for block in self.blocks:
            if block.name == name:
                return block
        raise KeyError(name)

    def replace_attributes(self, attributes: str) -> None:
        """Replace the function's attributes (the text after the parameter list)."""
        head, brace = self.header.rsplit("{", 1)
        old = self.signature.attributes
        cut = head.rindex(old) if old else len(head.rstrip())
        self.header = f"{head[:cut]}{'' if old else ' '}{attributes} {{{brace}"
        self.signature.attributes = attributes

    def __str__(self) -> str:
        numbers = changed_numbers(self._numbers())
        if numbers and self.numbered_types:
            pieces = [self._renumbered(block, numbers) for block in self.blocks]
        else:
            pieces = [block.label + "".join([i.lead + i.text for i in block.instructions]) for block in self.blocks]
        text = f"{self.header}{''.join(pieces)}{self.footer}"
        if "uselistorder" in self.footer and not self._is_source(text):
            text = text[: text.rindex(self.footer)] + strip_use_lists(self.footer)
        return renumber(text, numbers) if numbers and not self.numbered_types else text

    def _is_source(self, text: str) -> bool:
        """Whether a text is the source that the function was read from."""
        if self.span is None:
            return False
        lead = len(self.header) - len(self.header.lstrip())
        return self.span.source.text.startswith(text, self.span.start - lead)

    @staticmethod
    def _renumbered(block: Block, numbers: dict[str, str]) -> str:
        """A block's text with other numbers for values only."""
        from tlx.ir.parser.instructions import parse_instruction_text

        pieces = [renumber(block.label, numbers)]
        for instruction in block.instructions:
            spans = (
                instruction.spans
                if instruction.spans is not None
                else parse_instruction_text(instruction.text).spans or []
            )
            places = zip(spans, instruction.operands, strict=True)
            values = [(span, str(operand)) for span, operand in places if isinstance(operand, Local)]
            if instruction.result is not None:
                name = f"%{instruction.result}"
                values.insert(0, ((0, len(name)), name))
            pieces += [renumber(instruction.lead, numbers), renumber_at(instruction.text, values, numbers)]
        return "".join(pieces)

    def _numbers(self) -> list[str]:
        """The numbers of values without names, in the order LLVM counts them."""
        order = [a.name for a in self.arguments if a.name.isdecimal()]
        for block in self.blocks:
            order.extend([block.name] if block.name.isdecimal() else [])
            order.extend(i.result for i in block.instructions if i.result is not None and i.result.isdecimal())
        return order


@dataclass(eq=False)
class DuplicateFunction:
    """A `define` that differs from another function in its name only (`tlx.ir.parser.duplicates`).

    Attributes:
        original: The other function.
        name: Its name without `@`.
        lead: White space before it.
        span: Its header in the user's file.
    """

    original: Function
    name: str
    lead: str
    span: Span

    def __str__(self) -> str:
        return self.text_from(str(self.original))

    def text_from(self, text: str) -> str:
        """Its text, made from that of the original."""
        start = len(self.original.header) - len(self.original.header.lstrip())
        at = text.index(f"@{self.original.name}", start) + 1
        return f"{self.lead}{text[start:at]}{self.name}{text[at + len(self.original.name) :]}"

    @property
    def declaration(self) -> str:
        """A `declare` of it, for callers."""
        type_ = self.original.signature.type
        parameters = [*map(str, type_.params), *(["..."] if type_.vararg else [])]
        return f"\ndeclare {type_.result} @{self.name}({', '.join(parameters)})"
