"""The table of operators: for each a function that translates it.

    @operator("Add")
    def add(t: Tensors, node: Node, x: Tensor, y: Tensor) -> Tensor: ...

A function takes the tensors of a node's inputs, None for one that is left out, and returns one result, or a tuple. The
parameters without default are the inputs that a node must have; `*` takes any number.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

PACKAGE: Final = "tlx.frontends.onnx.operators"
"""Its modules have the operators, each those of a subject."""
_MARK: Final = "_onnx_operators"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that can be translated.

    Attributes:
        name: Its type; with its domain and a dot, if that is not ONNX's.
        translate: The function that translates it.
        required: How many inputs a node must have.
        most: How many it can have.
        note: What is not supported; empty if all is.
    """

    name: str
    translate: Callable[..., Any]
    required: int
    most: float
    note: str

    @property
    def takes_sequences(self) -> bool:
        """Whether operands may be sequences of tensors."""
        return "Sequence" in self.name or self.name in ("Identity", "If", "Loop")

    @property
    def subject(self) -> str:
        """The module that it is in: `shapes`."""
        return self.translate.__module__.rpartition(".")[2]


def operator(*names: str, note: str = "") -> Callable[[F], F]:
    """Mark a function that translates some operators.

    Args:
        *names: Their types.
        note: What is not supported, for the table in the documentation.
    """

    def mark(function: F) -> F:
        parameters = list(inspect.signature(function).parameters.values())[2:]
        required = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
        most = float("inf") if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)
        marked = [Operator(name, function, required, most, note) for name in names]
        setattr(function, _MARK, [*getattr(function, _MARK, []), *marked])
        return function

    return mark


@cache
def operators() -> Mapping[str, Operator]:
    """All operators by name: those of the modules in `operators/`."""
    found: dict[str, Operator] = {}
    package = importlib.import_module(PACKAGE)
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{PACKAGE}.{info.name}")
        for function in vars(module).values():
            for entry in getattr(function, _MARK, ()):
                found[entry.name] = entry
    return found
