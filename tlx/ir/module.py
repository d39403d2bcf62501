"""Modules: a list of items in file order, of which the functions with tensor operations are parsed to instructions.

Every piece keeps its text: an instruction the white space and comments before it (`lead`) and its characters (`text`),
a function its header, its blocks and the closing brace. A module is written by joining these texts, so whatever has not
been changed comes out byte for byte.

Metadata of loads and stores: non-temporal stores, streaming loads, loads without subnormals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from tlx.diagnostics import Source, Span
from tlx.ir.functions import DuplicateFunction, Function, NameScope, Signature, strip_module_use_lists
from tlx.ir.instructions import Instruction
from tlx.ir.types import VOID, PointerType, Type, pointer_to

_ATTRIBUTE_GROUP: Final = re.compile(r"(?m)^[ \t]*attributes\s+(#\d+)\s*=\s*\{((?:[^\"}]++|\"[^\"]*\")*+)\}")


@dataclass(eq=False)
class UnparsedText:
    """Text that is kept unparsed: globals, types, metadata, comments, functions without tensor operations."""

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


Item = UnparsedText | Declaration | Function | DuplicateFunction


def attribute_groups(text: str) -> dict[str, str]:
    """Text between the braces of each `attributes #N = { ... }`, by `#N`."""
    return {name: body.strip() for name, body in _ATTRIBUTE_GROUP.findall(text)}


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
            return strip_module_use_lists(text)
        return text

    def without_duplicates(self) -> str:
        """The text with declarations in place of duplicates, which are valid if their originals are."""
        return "".join([item.declaration if isinstance(item, DuplicateFunction) else str(item) for item in self.items])

    def _texts(self) -> list[str]:
        """The text of each item."""
        texts: list[str] = []
        by_item: dict[int, str] = {}
        for item in self.items:
            if isinstance(item, DuplicateFunction):
                text = item.text_from(by_item.get(id(item.original)) or str(item.original))
            else:
                text = by_item[id(item)] = str(item)
            texts.append(text)
        return texts

    @property
    def functions(self) -> list[Function]:
        """The parsed functions, in file order, without duplicates."""
        return [item for item in self.items if isinstance(item, Function)]

    @property
    def declarations(self) -> dict[str, Declaration]:
        """The declarations by name; `append` and `remove` change them."""
        if self._declarations is None:
            self._declarations = {item.name: item for item in self.items if isinstance(item, Declaration)}
        return self._declarations

    @property
    def is_parsed_fully(self) -> bool:
        """Whether the body of each function is parsed to instructions."""
        return not any(isinstance(item, UnparsedText) and _DEFINE.search(item.text) for item in self.items)

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
        """The names of functions and globals."""
        return NameScope(set(re.findall(r"@\"?([-a-zA-Z$._0-9]+)", self.source.text)))

    def raw_text(self) -> str:
        """Text of everything but parsed functions: globals, attribute groups, metadata."""
        return "".join(item.text for item in self.items if isinstance(item, UnparsedText | Declaration))

    @cached_property
    def is_big_endian(self) -> bool:
        """Whether the data layout says that the most significant byte of a number comes first."""
        return 'target datalayout = "E' in self.raw_text()

    @cached_property
    def attribute_groups(self) -> dict[str, str]:
        """Text between the braces of each `attributes #N = { ... }`, by `#N`."""
        return attribute_groups(self.raw_text())

    def function_attributes(self, signature: Signature) -> dict[str, str]:
        """String attributes of a function and its attribute groups, by name, such as `"target-features"`."""
        return dict(re.findall(r'"([^"]+)"(?:="([^"]*)")?', self.attribute_text(signature)))

    def attribute_text(self, signature: Signature) -> str:
        """All attributes of a function, with those of its groups in place of `#N`."""
        return re.sub(r"#\d+", lambda m: self.attribute_groups.get(m.group(), ""), signature.attributes)

    def pointer_to(self, pointee: Type, addrspace: int = 0) -> PointerType:
        """The type of a pointer to `pointee`, in the file's spelling of pointers."""
        return pointer_to(pointee if self.typed_pointers and pointee != VOID else None, addrspace)

    def drop_summary(self) -> None:
        """Remove the summary for ThinLTO, which describes functions as they were; LLVM computes it again."""
        for item in self.items:
            if isinstance(item, UnparsedText) and "^" in item.text:
                item.text = _SUMMARY.sub("", item.text)

    def append(self, item: Item) -> None:
        """Insert a new item after the last function or declaration."""
        index = len(self.items)
        while index > 0 and isinstance(self.items[index - 1], UnparsedText):
            index -= 1
        self.items.insert(index or len(self.items), item)
        if isinstance(item, Declaration) and self._declarations is not None:
            self._declarations[item.name] = item

    def remove(self, *items: Item) -> None:
        """Remove items."""
        removed = set(map(id, items))
        self.items = [item for item in self.items if id(item) not in removed]
        self._declarations = None


_DEFINE: Final = re.compile(r"(?m)^\s*define\b")
_SUMMARY: Final = re.compile(r"(?m)^\^\d+ = .*\n?")
_NODES: Final = re.compile(r"(?m)^!(\d+) = (.*?)\s*$")
_ONE: Final = "!{i32 1}"
_NONTEMPORAL: Final = ", !nontemporal "
NO_SUBNORMALS: Final = ", !tlx.no_subnormals !{}"
"""Marks a load of floats none of which is subnormal, and a function that may have zero for a subnormal result."""
NORMAL: Final = ", !tlx.normal !{}"
"""Marks an `exp` whose arguments are such that all results are normal numbers."""
NONPOSITIVE: Final = ", !tlx.nonpositive !{}"
"""Marks an `exp` none of whose arguments is above 0."""
SHORT: Final = ", !tlx.short !{}"
"""Marks an elementary function of floats whose result is rounded to bfloat: an error of 2^-14 is enough."""
ABSOLUTE: Final = ", !tlx.absolute !{}"
"""Marks an elementary function of floats that is at most 1 and whose error may be relative to 1: 2^-23 is enough."""
FUNCTION_RESULT: Final = ", !tlx.function_result !{}"
"""Marks a rounding of what a function computed in float to the function's type, which the program does not request."""
STREAMING: Final = ", !tlx.streaming !{}"
"""Marks a load of data that is evicted from the L1 cache before it is read again."""


def nontemporal_metadata(module: Module) -> str:
    """The metadata of a non-temporal store: `, !nontemporal !7`. The node is added if the module has none."""
    nodes = {text: number for number, text in reversed(_NODES.findall(module.raw_text()))}
    if _ONE not in nodes:
        nodes[_ONE] = str(1 + max((int(number) for number in nodes.values()), default=-1))
        module.items.append(UnparsedText(f"\n\n!{nodes[_ONE]} = {_ONE}\n"))
    return f"{_NONTEMPORAL}!{nodes[_ONE]}"


def is_nontemporal(instruction: Instruction) -> bool:
    """Whether a store is non-temporal."""
    return _NONTEMPORAL in instruction.text


def is_streaming(instruction: Instruction) -> bool:
    """Whether the loaded data need not stay in the L1 cache."""
    return STREAMING in instruction.text


def is_normal(instruction: Instruction) -> bool:
    """Whether all results of an `exp` are normal numbers."""
    return NORMAL in instruction.text


def is_nonpositive(instruction: Instruction) -> bool:
    """Whether no argument of an `exp` is above 0."""
    return NONPOSITIVE in instruction.text


def is_short(instruction: Instruction) -> bool:
    """Whether an error of 2^-14 is enough for an elementary function."""
    return SHORT in instruction.text


def is_function_result(instruction: Instruction) -> bool:
    """Whether an instruction rounds what a function computed in float."""
    return FUNCTION_RESULT in instruction.text


def is_absolute(instruction: Instruction) -> bool:
    """Whether an error of 2^-23 is enough for an elementary function, however small its result is."""
    return ABSOLUTE in instruction.text


def has_no_subnormals(instruction: Instruction) -> bool:
    """Whether no float that is loaded or computed needs to be subnormal."""
    return NO_SUBNORMALS in instruction.text
