"""Extents as i64 values: products, checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.module import Block
from tlx.ir.tensor_builder import TensorBuilder
from tlx.ir.types import I1, I64, VOID
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.dynamic.helpers import Helpers

_MOST_ELEMENTS: Final = 1 << 48


def number(value: int) -> ConstInt:
    """An i64."""
    return ConstInt(I64, value)


def product(b: Builder, factors: Sequence[Value]) -> Value:
    """The product of i64 values; 1 of none."""
    result: Value = number(1)
    for factor in factors:
        result = b.mul(result, factor, "count")
    return result


@dataclass(eq=False)
class Checks:
    """Conditions that must hold at run time; `emit` stops the program where one does not.

    call void @tlx.dynamic.check(i1 %all)
    """

    b: TensorBuilder
    helpers: Helpers
    _held: list[Value] = field(default_factory=list[Value])

    def compare(self, predicate: str, a: Value, b: Value) -> None:
        """Require a signed comparison of two i64; nothing where both are known to fulfil it."""
        if a == b and predicate in ("eq", "sle", "sge"):
            return
        if isinstance(a, ConstInt) and isinstance(b, ConstInt) and _holds(predicate, a.value, b.value):
            return
        self._held.append(self.b.icmp(predicate, a, b, "valid"))

    def require(self, condition: Value) -> None:
        """Require an i1."""
        self._held.append(condition)

    def countable(self, sizes: Sequence[Value]) -> None:
        """Require that the product of positive numbers is a possible number of elements."""
        total: Value | None = None
        for size in sizes:
            if total is not None and not (isinstance(total, ConstInt) and isinstance(size, ConstInt)):
                positive = self.b.binary("or", size, number(1), "positive")  # whether it is one is checked as well
                most = self.b.binary("udiv", number(_MOST_ELEMENTS), positive, "most")
                self._held.append(self.b.icmp("ule", total, most, "valid"))
            total = size if total is None else self.b.mul(total, size, "count")

    def emit(self) -> None:
        """Stop the program unless all conditions hold."""
        if not self._held:
            return
        all_: Value = self._held[0]
        for condition in self._held[1:]:
            all_ = self.b.binary("and", all_, condition, "valid")
        self.helpers.call(self.b, "check", [("valid", I1)], [all_], _check)
        self._held = []


def _holds(predicate: str, a: int, b: int) -> bool:
    return {"eq": a == b, "sle": a <= b, "sge": a >= b, "slt": a < b, "sgt": a > b}[predicate]


def _check(b: TensorBuilder, parameters: dict[str, Local]) -> None:
    """`if (!valid) trap();`."""
    stop = b.new_block("stop")
    end = b.new_block("end", stop)
    b.branch_if(parameters["valid"], end, stop)
    trap(b, stop)
    b.at_end(end)


def trap(b: TensorBuilder, block: Block) -> None:
    """End a block by stopping the program."""
    b.at_end(block)
    b.call_named("llvm.trap", VOID, [])
    b.emit("unreachable", VOID, [], "unreachable")
