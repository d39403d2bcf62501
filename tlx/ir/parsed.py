"""What parsers of instructions share: what they find out, and operands in a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.cursor import Cursor
from tlx.ir.types import VOID, SimpleType, Type
from tlx.ir.values import Value

UNKNOWN: Final = SimpleType("?")
"""The type of a result that the text does not tell."""
Types = dict[str, Type]
"""Bodies of the module's `%name = type ...`."""


@dataclass(slots=True)
class Parsed:
    """What a parser found out beyond the operands."""

    type: Type = VOID
    operands: list[Value] = field(default_factory=list[Value])
    source_type: Type | None = None
    predicate: str = ""
    indices: tuple[int, ...] = ()
    arg_attributes: tuple[str, ...] = ()
    align: int | None = None
    trailer_at: int | None = None


Parser = Callable[[Cursor, Parsed, str, Types], None]
"""Reads what stands behind an opcode: (cursor, what it finds out, opcode, named types)."""


def read_operands(c: Cursor, p: Parsed, count: int) -> None:
    """Read operands with their types, separated by commas."""
    for index in range(count):
        if index:
            c.expect(",")
        p.operands.append(c.operand())
