"""Programs with extents known only at run time, and their arguments.

Every program is a function of pointers and numbers; the evaluator computes the expected result from its text, and numpy
where `expected` is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tlx.intrinsics.numpy_types import Array

Entry = str | int


@dataclass
class Body:
    """Text of a function's body; methods add lines and give the names of values."""

    lines: list[str] = field(default_factory=list[str])
    declarations: set[str] = field(default_factory=set[str])
    _count: int = 0

    def name(self) -> str:
        self._count += 1
        return f"%x{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def value(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def vector(self, entries: Sequence[Entry]) -> str:
        """A `<n x i32>`, its numbers in place and the others inserted."""
        count = len(entries)
        fixed = ", ".join(f"i32 {e if isinstance(e, int) else 0}" for e in entries)
        vector = f"<{fixed}>"
        for place, entry in enumerate(entries):
            if isinstance(entry, str):
                vector = self.value(f"insertelement <{count} x i32> {vector}, i32 {entry}, i32 {place}")
        return f"<{count} x i32> {vector}"

    def type(self, shape: Sequence[Entry], layout: Sequence[int] | None, padding: Sequence[Entry] | None) -> str:
        """The operands shape, layout, padding."""
        rank = len(shape)
        vectors = (shape, layout or range(rank), padding or (0,) * rank)
        return ", ".join(self.vector(list(vector)) for vector in vectors)

    def load(
        self,
        pointer: str,
        element: str,
        shape: Sequence[Entry],
        layout: Sequence[int] | None = None,
        padding: Sequence[Entry] | None = None,
        pitches: Sequence[Entry] | None = None,
    ) -> str:
        type_ = self.type(shape, layout, padding)
        steps = self.vector(list(pitches or (0,) * len(shape)))
        return self.value(f"call token @llvm.tensor.load(ptr elementtype({element}) {pointer}, {type_}, {steps})")

    def view(self, pointer: str, element: str, shape: Sequence[Entry], *rest: Any) -> str:
        """The pointer form of typeinfo."""
        type_ = self.type(shape, *[*rest, None, None][:2])
        flat = f"<vscale x 1 x {element}>"
        return self.value(f"call token @llvm.tensor.typeinfo(ptr elementtype({flat}) {pointer}, {type_})")

    def info(self, value: str, element: str, shape: Sequence[Entry], *rest: Any) -> str:
        type_ = self.type(shape, *[*rest, None, None][:2])
        return self.value(f"call token @llvm.tensor.typeinfo(<vscale x 1 x {element}> {value}, {type_})")

    def op(self, name: str, element: str, *operands: str) -> str:
        """An operation: tokens are given as names, other operands with their type."""
        typed = [o if " " in o else f"token {o}" for o in operands]
        return self.value(f"call <vscale x 1 x {element}> @llvm.tensor.{name}({', '.join(typed)})")

    def store(self, pointer: str, token: str, pitches: Sequence[Entry]) -> None:
        self.line(f"call void @llvm.tensor.store(ptr {pointer}, token {token}, {self.vector(list(pitches))})")

    def put(self, pointer: str, value: str, element: str, shape: Sequence[Entry], *rest: Any) -> None:
        """Store a handle, dense."""
        self.store(pointer, self.info(value, element, shape, *rest), (0,) * len(shape))

    def vscale(self, text: str, element: str = "float") -> str:
        """An instruction with `H` for the type of handles."""
        return self.value(text.replace("H", f"<vscale x 1 x {element}>"))


@dataclass(frozen=True)
class Program:
    """A function with run-time extents.

    Attributes:
        name: Its name.
        parameters: As in its text.
        body: Writes it.
        arguments: From a generator of random numbers and sizes to arguments; arrays that are written are compared.
        sizes: What is tried.
        exact: Whether results are the same to the last bit whatever the order of sums.
        expected: From arguments (as they were) to what arrays hold afterwards, by number of the argument.
    """

    name: str
    parameters: str
    body: Callable[[Body], None]
    arguments: Callable[..., list[Any]]
    sizes: Sequence[tuple[int, ...]]
    exact: bool = True
    expected: Callable[..., dict[int, Array]] | None = None

    @property
    def text(self) -> str:
        body = Body()
        self.body(body)
        lines = "\n".join(body.lines)
        tail = "" if lines.rstrip().endswith("ret void") else "\n  ret void"
        declared = "".join(f"{d}\n" for d in sorted(body.declarations))
        return f"define void @{self.name}({self.parameters}) {{\n{lines}{tail}\n}}\n{declared}"


def integers(rng: np.random.Generator, count: int, dtype: Any, low: int = -4, high: int = 5) -> Array:
    """Small whole numbers, which sum up exactly in every order."""
    return rng.integers(low, high, count).astype(dtype)
