"""Globals and functions of a module by name: their addresses and first contents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import EvaluationError, Source
from tlx.evaluate.codec import Codecs
from tlx.evaluate.constants import Constants, string_bytes
from tlx.evaluate.layout import Layout
from tlx.evaluate.memory import Memory
from tlx.ir.cursor import Cursor
from tlx.ir.lexer import tokenize
from tlx.ir.module import Module
from tlx.ir.types import Type
from tlx.ir.values import Text
from tlx.ir.values import Value as Operand

_NAME: Final = r'(?:[-a-zA-Z$._0-9\x80-\U0010ffff]+|"[^"]*")'
_GLOBAL: Final = re.compile(rf"(?m)^[ \t]*@({_NAME})[ \t]*=")
_NAMED_TYPE: Final = re.compile(rf"(?m)^[ \t]*(%{_NAME})[ \t]*=[ \t]*type\b")
_NEXT_ITEM: Final = re.compile(r"(?m)^[ \t]*(?:[@%!$^]|(?:define|declare|attributes|source_filename|target|module)\b)")
_EXTERNAL: Final = frozenset({"external", "extern_weak"})
_CODE_BASE: Final = 1 << 24
_CODE_STEP: Final = 16


@dataclass(frozen=True)
class GlobalVariable:
    """What the text says about a global: `initialiser` is None for an external one; `words` stand before its kind."""

    name: str
    kind: str
    words: frozenset[str]
    type: Type
    initialiser: Operand | None
    align: int | None


def named_types(source: Source) -> dict[str, Type]:
    """Bodies of the `%name = type ...` of a module."""
    found: dict[str, Type] = {}
    for match in _NAMED_TYPE.finditer(source.text):
        found[match[1]] = _cursor(source, match.end()).type()
    return found


def _cursor(source: Source, start: int) -> Cursor:
    """A cursor on a top-level item whose first line goes on at `start`."""
    line_end = source.text.find("\n", start)
    following = _NEXT_ITEM.search(source.text, line_end) if line_end >= 0 else None
    return Cursor(source, tokenize(source, start, following.start() if following else None))


def _read_global(source: Source, name: str, start: int) -> GlobalVariable:
    """Parse what follows `@name =`."""
    cursor = _cursor(source, start)
    words: set[str] = set()
    while (kind := cursor.next()).text not in ("global", "constant", "alias", "ifunc"):
        words.add(kind.text)
        if kind.kind == "end":
            raise cursor.error("expected 'global' or 'constant'", kind)
        if cursor.at("("):
            cursor.skip_parens()
    type_ = cursor.type()
    if kind.text in ("alias", "ifunc"):
        cursor.expect(",")
        return GlobalVariable(name, kind.text, frozenset(words), type_, cursor.typed_value(), None)
    value = None if words & _EXTERNAL else cursor.value(type_)
    return GlobalVariable(name, kind.text, frozenset(words), type_, value, _alignment(cursor))


def _alignment(cursor: Cursor) -> int | None:
    while cursor.token.kind != "end":
        if cursor.accept("align"):
            return cursor.integer()
        cursor.next()
    return None


class Symbols:
    """Addresses of globals and functions, given out when first asked for."""

    def __init__(self, module: Module, layout: Layout, memory: Memory, codecs: Codecs) -> None:
        self._source = module.source
        self._layout = layout
        self._memory = memory
        self._codecs = codecs
        self.constants = Constants(layout, self.address)
        self._places = {m[1]: m.end() for m in _GLOBAL.finditer(module.source.text)}
        self._functions = {f.name for f in module.functions} | set(module.declarations)
        self._variables: dict[str, GlobalVariable] = {}
        self._addresses: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def address(self, name: str) -> int:
        """Address of a global or a function.

        Raises:
            EvaluationError: There is no such name, or the global is defined elsewhere.
        """
        if name not in self._addresses:
            variable = self.variable(name)
            if variable is not None:
                self._place_global(variable)
            elif name in self._functions:
                self._place_function(name)
            else:
                raise EvaluationError(f"@{name} is not defined in this module")
        return self._addresses[name]

    def variable(self, name: str) -> GlobalVariable | None:
        """What the text says about a global; None for what is none."""
        if name not in self._variables and name in self._places:
            self._variables[name] = _read_global(self._source, name, self._places[name])
        return self._variables.get(name)

    def function_at(self, address: int) -> str:
        """Name of the function at an address.

        Raises:
            EvaluationError: There is none.
        """
        if address not in self._names:
            raise EvaluationError(f"call through {address:#x}, which is not the address of a function")
        return self._names[address]

    def aliased(self, name: str) -> str | None:
        """The function that an alias stands for; None for a name that is no alias."""
        return self.function_at(self.address(name)) if name in self._places else None

    def _place_function(self, name: str) -> None:
        address = _CODE_BASE + _CODE_STEP * len(self._names)
        self._addresses[name] = address
        self._names[address] = name

    def _data(self, type_: Type, value: Operand) -> bytes:
        if isinstance(value, Text) and value.spelling.startswith('c"'):
            return string_bytes(value.spelling)
        return self._codecs[type_].encode(self.constants.value(value))

    def _place_global(self, variable: GlobalVariable) -> None:
        if variable.initialiser is None:
            raise EvaluationError(f"global @{variable.name} is external: its memory is not in this module")
        if variable.kind in ("alias", "ifunc"):
            self._addresses[variable.name] = self.constants.value(variable.initialiser)
            return
        align = variable.align or self._layout.align(variable.type)
        size = self._layout.size(variable.type)
        region = self._memory.allocate(size, f"global @{variable.name}", align)
        self._addresses[variable.name] = region.base
        data = self._data(variable.type, variable.initialiser)
        region.data[: len(data)] = data
        region.writable = variable.kind == "global"
