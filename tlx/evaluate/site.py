"""What an intrinsic or library function may know about the call it is compiled for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tlx.evaluate.scope import Context
from tlx.ir.types import Type


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call of an intrinsic.

    Attributes:
        context: The machine's parts.
        name: The callee, without `@`.
        result: Type of the result.
        arguments: Types of the arguments.
    """

    context: Context
    name: str
    result: Type
    arguments: tuple[Type, ...]


Run: TypeAlias = Callable[..., Any]
Factory: TypeAlias = Callable[[CallSite], Run]
Table: TypeAlias = dict[str, Factory]


def plain(function: Run) -> Factory:
    """An entry whose function does not depend on the call's types."""
    return lambda _site: function
