"""Functions whose bodies are parsed to instructions, and those that are written as another one is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tlx.diagnostics import Span
from tlx.ir.blocks import Block, Instruction
from tlx.ir.names import NameScope
from tlx.ir.types import FunctionType, Type
from tlx.ir.values import Local
from tlx.ir.writer import changed_numbers, renumbered, with_numbers, without_use_lists


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
    """What a `define` or `declare` says before the body.

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
        numbered_types: Whether the module has types named by numbers, which look like values in a text.
        facts: What analyses found out, by what they find; they know whether it is still true.
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
        """Give the function other attributes (the text behind the parameter list)."""
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
            text = text[: text.rindex(self.footer)] + without_use_lists(self.footer)
        return renumbered(text, numbers) if numbers and not self.numbered_types else text

    def _is_source(self, text: str) -> bool:
        """Whether a text is what the function was read from."""
        if self.span is None:
            return False
        lead = len(self.header) - len(self.header.lstrip())
        return self.span.source.text.startswith(text, self.span.start - lead)

    @staticmethod
    def _renumbered(block: Block, numbers: dict[str, str]) -> str:
        """A block's text with other numbers, where only what is known to be a value may change."""
        from tlx.ir.instructions import parse_text

        pieces = [renumbered(block.label, numbers)]
        for instruction in block.instructions:
            spans = instruction.spans if instruction.spans is not None else parse_text(instruction.text).spans or []
            places = zip(spans, instruction.operands, strict=True)
            values = [(span, str(operand)) for span, operand in places if isinstance(operand, Local)]
            if instruction.result is not None:
                name = f"%{instruction.result}"
                values.insert(0, ((0, len(name)), name))
            pieces += [renumbered(instruction.lead, numbers), with_numbers(instruction.text, values, numbers)]
        return "".join(pieces)

    def _numbers(self) -> list[str]:
        """The names that are numbers, in the order LLVM counts them."""
        order = [a.name for a in self.arguments if a.name.isdecimal()]
        for block in self.blocks:
            order.extend([block.name] if block.name.isdecimal() else [])
            order.extend(i.result for i in block.instructions if i.result is not None and i.result.isdecimal())
        return order


@dataclass(eq=False)
class Twin:
    """A `define` that is written as another function is, under a name of its own (`tlx.ir.twins`).

    Attributes:
        of: The other function.
        name: Its name without `@`.
        lead: White space before it.
        span: Its header in the user's file.
    """

    of: Function
    name: str
    lead: str
    span: Span

    def __str__(self) -> str:
        return self.written(str(self.of))

    def written(self, text: str) -> str:
        """Its text, given that of the other function."""
        start = len(self.of.header) - len(self.of.header.lstrip())
        at = text.index(f"@{self.of.name}", start) + 1
        return f"{self.lead}{text[start:at]}{self.name}{text[at + len(self.of.name) :]}"

    @property
    def declaration(self) -> str:
        """A `declare` of it: all that other functions know of it."""
        type_ = self.of.signature.type
        parameters = [*map(str, type_.params), *(["..."] if type_.vararg else [])]
        return f"\ndeclare {type_.result} @{self.name}({', '.join(parameters)})"
