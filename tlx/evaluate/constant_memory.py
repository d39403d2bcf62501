"""Memory that a program cannot change: what its constant globals hold, when it is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tlx.diagnostics import EvaluationError, ParseError
from tlx.evaluate.codec import Codecs
from tlx.evaluate.constants import Constants, offset
from tlx.evaluate.layout import Layout
from tlx.evaluate.memory import Memory
from tlx.evaluate.symbols import GlobalVariable, Symbols, named_types
from tlx.ir.module import Instruction, Module
from tlx.ir.values import Aggregate, ConstFloat, ConstInt, Keyword, Local, Splat, Text, Value

_DEFINITIVE: Final = frozenset(
    "private internal linkonce_odr weak_odr dso_local unnamed_addr local_unnamed_addr hidden protected default".split()
)


class ConstantMemory:
    """The constant globals of a module's source whose contents no other module and no linker can replace."""

    def __init__(self, module: Module) -> None:
        self._memory = Memory()
        self._layout = Layout(named_types(module.source))
        self._symbols = Symbols(module, self._layout, self._memory, Codecs(self._layout))
        self._constants = Constants(self._layout, self._place)

    def find(self, definitions: Mapping[str, Instruction], pointer: Value) -> tuple[bytes, int] | None:
        """The contents of the global that a pointer always points into, and the offset of the pointer in it.

        Args:
            definitions: The instructions of the pointer's function, by the names of their results.
            pointer: A pointer.
        """
        try:
            address = self._address(definitions, pointer)
        except (EvaluationError, ParseError):
            return None
        region = None if address is None else self._memory.nearest(address)
        if address is None or region is None or address >= region.end:
            return None
        return bytes(region.data), address - region.base

    def _address(self, definitions: Mapping[str, Instruction], pointer: Value) -> int | None:
        if not isinstance(pointer, Local):
            return self._constants.value(pointer)
        made = definitions.get(pointer.name)
        if made is None or made.opcode not in ("bitcast", "getelementptr"):
            return None
        base, indices = self._address(definitions, made.operands[0]), made.operands[1:]
        known = [index.value for index in indices if isinstance(index, ConstInt)]
        if base is None or len(known) < len(indices):
            return None
        return base if made.source_type is None else base + offset(self._layout, made.source_type, known)

    def _place(self, name: str) -> int:
        variable = self._symbols.variable(name)
        if variable is None or not _is_definitive(variable):
            raise EvaluationError(f"@{name} may hold something else when the program runs")
        return self._symbols.address(name)


def _is_definitive(variable: GlobalVariable) -> bool:
    value = variable.initialiser
    return variable.kind == "constant" and variable.words <= _DEFINITIVE and value is not None and _is_data(value)


def _is_data(value: Value) -> bool:
    """Whether a constant is made of numbers: no addresses, which only the linker knows."""
    match value:
        case Aggregate():
            return value.integers is not None or all(_is_data(element) for element in value.elements)
        case Splat():
            return _is_data(value.element)
        case Text():
            return value.spelling.startswith('c"')
        case Keyword():
            return value.word == "zeroinitializer"
        case _:
            return isinstance(value, ConstInt | ConstFloat)
