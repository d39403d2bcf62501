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
Function: TypeAlias = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
)


def run(function: Function) -> Run:
    """The function itself, with a type that lambdas get their parameters' types from."""
    return function


def plain(function: Run) -> Factory:
    """An entry whose function does not depend on the call's types."""
    return lambda _site: function


def first(value: Any, *_others: Any) -> Any:
    """The first argument: what intrinsics give that only tell the optimiser something."""
    return value


def nothing(*_args: Any) -> None:
    """For intrinsics that do nothing here."""
