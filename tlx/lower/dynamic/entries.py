"""Entries of shape, padding and stride vectors as i64 values, and which of them are surely the same."""

from __future__ import annotations

from dataclasses import dataclass, field

from tlx.ir.builder import Builder
from tlx.ir.fold import Folder
from tlx.ir.module import Instruction
from tlx.ir.types import I64, VectorType
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.dynamic.numbers import number


@dataclass(eq=False)
class Entries:
    """The entries of a function's vectors.

    Attributes:
        b: Where they are taken out.
        folder: Knows the constant ones.
        definitions: The function's instructions by result.
    """

    b: Builder
    folder: Folder
    definitions: dict[str, Instruction]
    _origins: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, vector: Value) -> list[Value]:
        """All entries, as i64; constants where they are known."""
        assert isinstance(vector.type, VectorType)
        known = self.folder.known(vector) or (None,) * vector.type.count
        return [number(k) if k is not None else self._entry(vector, i) for i, k in enumerate(known)]

    def is_same(self, a: Value, b: Value) -> bool:
        """Whether two values are surely equal."""
        return a == b or (str(a) in self._origins and self._origins.get(str(a)) == self._origins.get(str(b)))

    def _entry(self, vector: Value, index: int) -> Value:
        found = inserted(self.definitions, vector, index)
        entry = found if found is not None else self.b.extract_element(vector, index, "entry")
        extent = self.b.cast("sext", entry, I64, "extent")
        self._origins[str(extent)] = str(found) if found is not None else f"{vector}[{index}]"
        return extent


def inserted(definitions: dict[str, Instruction], vector: Value, index: int) -> Value | None:
    """The number that was put into an entry, if the vector was put together in this function."""
    while isinstance(vector, Local):
        definition = definitions.get(vector.name)
        if definition is None or definition.opcode != "insertelement":
            return None
        source, element, place = definition.operands
        if not isinstance(place, ConstInt):
            return None
        if place.value == index:
            return element
        vector = source
    return None


def symbol(definitions: dict[str, Instruction], folder: Folder, vector: Value, index: int) -> str | int:
    """What stands for an entry: two that have the same symbol are equal."""
    known = (folder.known(vector) or {index: None})[index]
    if known is not None:
        return known
    found = inserted(definitions, vector, index)
    return f"{vector}[{index}]" if found is None else str(found)
