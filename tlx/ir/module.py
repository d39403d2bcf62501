"""The model: a module is a list of items in file order; functions with work in them are parsed on demand.

Every piece keeps its own text. An instruction is the white space and comments before it (`lead`) and its own
characters (`text`); a function is its header, its blocks and the closing brace. Writing joins the pieces, so what
nobody changed comes out byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from tlx.diagnostics import Source, Span
from tlx.ir.opcodes import CALLS, TERMINATORS
from tlx.ir.types import LABEL, VOID, FunctionType, PointerType, Type
from tlx.ir.values import Global, Local, Value
from tlx.ir.writer import (
    changed_numbers,
    renumbered,
    with_numbers,
    without_module_use_lists,
    without_use_lists,
)

_ATTRIBUTE_GROUP: Final = re.compile(r"(?m)^[ \t]*attributes\s+(#\d+)\s*=\s*\{((?:[^\"}]++|\"[^\"]*\")*+)\}")
_UNQUOTED: Final = re.compile(r"[-a-zA-Z$._][-a-zA-Z$._0-9]*")


@dataclass(eq=False, slots=True)
class Instruction:
    """One instruction (or debug record), with its text and what the text says.

    Attributes:
        opcode: LLVM's opcode; `call` also for tail calls; `#dbg` for debug records.
        type: Type of the result, `void` where there is none.
        operands: Every value in the text, in order of appearance, labels included; a callee comes before the
            arguments of its call.
        text: Its characters, from the result's name to the last metadata attachment.
        result: Name of the result without `%`, None where there is none.
        lead: White space and comments before it.
        spans: Range of each operand's value in `text`.
        span: Where it stands in the user's file; None for what lowering made.
        source_type: Element type of `getelementptr`, type of `alloca`, function type of calls.
        predicate: Of `icmp` and `fcmp`; operation of `atomicrmw`.
        indices: Of `extractvalue` and `insertvalue`.
        arg_attributes: Attributes of each argument of a call, as text.
        flags: Words such as nsw, fast, inbounds, volatile, tail.
        align: Alignment in bytes, if the text gives one.
        trailer: What follows the operands: call attributes, alignment, metadata attachments.
    """

    opcode: str
    type: Type
    operands: list[Value]
    text: str
    result: str | None = None
    lead: str = "\n  "
    spans: list[tuple[int, int]] | None = None
    span: Span | None = None
    source_type: Type | None = None
    predicate: str = ""
    indices: tuple[int, ...] = ()
    arg_attributes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    align: int | None = None
    trailer: str = ""

    @property
    def value(self) -> Local:
        """The result as an operand.

        Raises:
            ValueError: The instruction has no result.
        """
        if self.result is None:
            msg = f"instruction has no result: {self.text}"
            raise ValueError(msg)
        return Local(self.type, self.result)

    @property
    def is_call(self) -> bool:
        """A call, invoke or callbr."""
        return self.opcode in CALLS

    @property
    def callee(self) -> str | None:
        """Name (without `@`) of a directly called function."""
        if self.opcode not in CALLS:
            return None
        called = self.operands[0]
        return called.name if isinstance(called, Global) else None

    @property
    def args(self) -> list[Value]:
        """Arguments of a call."""
        return self.operands[1 : 1 + len(self.arg_attributes)]

    @property
    def is_terminator(self) -> bool:
        """Whether it ends a block."""
        return self.opcode in TERMINATORS

    @property
    def incoming(self) -> list[tuple[Value, str]]:
        """(value, block name) pairs of a phi."""
        return [
            (value, label.name)
            for value, label in zip(self.operands[::2], self.operands[1::2], strict=True)
            if isinstance(label, Local)
        ]

    @property
    def targets(self) -> list[str]:
        """Names of the blocks a terminator may go to."""
        if not self.is_terminator:
            return []
        return [op.name for op in self.operands if isinstance(op, Local) and op.type == LABEL]

    @property
    def debug_location(self) -> str:
        """`, !dbg !N` if the instruction has one, else nothing."""
        found = re.search(r",\s*!dbg (!\d+|!DILocation\([^)]*\))", self.trailer)
        return f", !dbg {found.group(1)}" if found else ""


@dataclass(eq=False, slots=True)
class Block:
    """A basic block.

    Attributes:
        name: Its label without `%` and `:`; a number as text where LLVM numbers it.
        label: The label as spelled in the text with its lead, empty for an unlabelled entry block.
        instructions: In order; the last is the terminator.
    """

    name: str
    label: str = ""
    instructions: list[Instruction] = field(default_factory=list[Instruction])

    @property
    def terminator(self) -> Instruction:
        """The last instruction."""
        return self.instructions[-1]

    @property
    def phis(self) -> list[Instruction]:
        """The phi instructions."""
        return [i for i in self.instructions if i.opcode == "phi"]

    @property
    def value(self) -> Local:
        """The block as an operand of a branch."""
        return Local(LABEL, self.name)


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
class Raw:
    """Text that is kept as it is: globals, types, metadata, comments, functions nobody works on."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class Declaration:
    """A `declare`, with the white space and comments before it."""

    text: str
    signature: Signature
    span: Span | None = None

    @property
    def name(self) -> str:
        """Name without `@`."""
        return self.signature.name

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class NameScope:
    """Names that are taken; gives fresh ones."""

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
    """A stem as a name that needs no quotes."""
    stem = stem.strip('"')
    return stem if _UNQUOTED.fullmatch(stem) else "v" + re.sub(r"[^-a-zA-Z$._0-9]", ".", stem)


def attribute_groups(text: str) -> dict[str, str]:
    """Text between the braces of each `attributes #N = { ... }`, by `#N`."""
    return {name: body.strip() for name, body in _ATTRIBUTE_GROUP.findall(text)}


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


Item = Raw | Declaration | Function | Twin


@dataclass(eq=False)
class Module:
    """A module of LLVM assembly.

    Attributes:
        source: The text it was read from.
        items: In file order; `str(module)` joins their texts.
        typed_pointers: Whether the file spells pointers as `T*`.
    """

    source: Source
    items: list[Item]
    typed_pointers: bool = False
    _declarations: dict[str, Declaration] | None = None

    def __str__(self) -> str:
        text = "".join(self._texts())
        if "\nuselistorder" in text and text != self.source.text:
            return without_module_use_lists(text)
        return text

    def without_twins(self) -> str:
        """Its text with declarations in place of twins, which are as right or wrong as what they are twins of."""
        return "".join([item.declaration if isinstance(item, Twin) else str(item) for item in self.items])

    def _texts(self) -> list[str]:
        """The text of each item."""
        texts: list[str] = []
        of: dict[int, str] = {}
        for item in self.items:
            known = of.get(id(item.of)) if isinstance(item, Twin) else None
            text = item.written(known) if isinstance(item, Twin) and known is not None else str(item)
            of[id(item)] = text
            texts.append(text)
        return texts

    @property
    def functions(self) -> list[Function]:
        """The parsed functions, in file order, without twins."""
        return [item for item in self.items if isinstance(item, Function)]

    @property
    def declarations(self) -> dict[str, Declaration]:
        """The declarations by name; declarations come and go through `append`, `insert_before` and `remove`."""
        if self._declarations is None:
            self._declarations = {item.name: item for item in self.items if isinstance(item, Declaration)}
        return self._declarations

    def function(self, name: str) -> Function:
        """The parsed function of that name.

        Raises:
            KeyError: There is none.
        """
        for item in self.items:
            if isinstance(item, Function) and item.name == name:
                return item
        raise KeyError(name)

    @cached_property
    def global_names(self) -> NameScope:
        """Names of functions and globals that are taken."""
        return NameScope(set(re.findall(r"@\"?([-a-zA-Z$._0-9]+)", self.source.text)))

    def raw_text(self) -> str:
        """Text of everything that is no parsed function: globals, attribute groups, metadata."""
        return "".join(item.text for item in self.items if isinstance(item, Raw | Declaration))

    @cached_property
    def attribute_groups(self) -> dict[str, str]:
        """Text between the braces of each `attributes #N = { ... }`, by `#N`."""
        return attribute_groups(self.raw_text())

    def function_attributes(self, signature: Signature) -> dict[str, str]:
        """String attributes of a function, its groups included: `"target-features"` -> its value."""
        text = re.sub(r"#\d+", lambda m: self.attribute_groups.get(m.group(), ""), signature.attributes)
        return dict(re.findall(r'"([^"]+)"(?:="([^"]*)")?', text))

    def pointer_to(self, pointee: Type, addrspace: int = 0) -> PointerType:
        """The type of a pointer to `pointee`, in the file's spelling of pointers."""
        return PointerType(pointee if self.typed_pointers and pointee != VOID else None, addrspace)

    def insert_before(self, anchor: Item, item: Item) -> None:
        """Put a new item in front of another."""
        self.items.insert(self.items.index(anchor), item)
        if isinstance(item, Declaration):
            self._declarations = None

    def append(self, item: Item) -> None:
        """Put a new item behind the last function or declaration."""
        place = len(self.items)
        while place > 0 and isinstance(self.items[place - 1], Raw):
            place -= 1
        self.items.insert(place or len(self.items), item)
        if isinstance(item, Declaration) and self._declarations is not None:
            self._declarations[item.name] = item

    def remove(self, *items: Item) -> None:
        """Take items out."""
        gone = set(map(id, items))
        self.items = [item for item in self.items if id(item) not in gone]
        self._declarations = None
