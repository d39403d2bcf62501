"""Extents as i64 values: entries of shape, padding and stride vectors, their products, checks at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tlx.ir.analysis.constant_folding import ConstantFolder
from tlx.ir.arithmetic import compare_integers
from tlx.ir.builder.instructions import Builder
from tlx.ir.builder.tensors import TensorBuilder
from tlx.ir.types import I1, I64, VectorType
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.dynamic.helpers import HelperFunctions
from tlx.lower.memory.allocation import emit_trap

_MOST_ELEMENTS: Final = 1 << 48


def i64(value: int) -> ConstInt:
    """An i64."""
    return ConstInt(I64, value)


def product(b: Builder, factors: Sequence[Value]) -> Value:
    """The product of i64 values; 1 of none."""
    result: Value = i64(1)
    for factor in factors:
        result = b.mul(result, factor, "count")
    return result


@dataclass(eq=False)
class RuntimeChecks:
    """Conditions that must hold at run time; the code of `emit` stops the program where one does not.

    call void @tlx.dynamic.check(i1 %all)
    """

    b: TensorBuilder
    helpers: HelperFunctions
    _conditions: list[Value] = field(default_factory=list[Value])

    def compare(self, predicate: str, a: Value, b: Value) -> None:
        """Require a signed comparison of two i64, unless it is known to hold."""
        if a == b and predicate in ("eq", "sle", "sge"):
            return
        if isinstance(a, ConstInt) and isinstance(b, ConstInt) and compare_integers(predicate, a.value, b.value, 64):
            return
        self._conditions.append(self.b.icmp(predicate, a, b, "valid"))

    def require(self, condition: Value) -> None:
        """Require an i1."""
        self._conditions.append(condition)

    def require_countable(self, sizes: Sequence[Value]) -> None:
        """Require that the product of positive numbers does not exceed the largest number of elements."""
        total: Value | None = None
        for size in sizes:
            if total is not None and not (isinstance(total, ConstInt) and isinstance(size, ConstInt)):
                positive = self.b.binary("or", size, i64(1), "positive")  # its sign is checked as well
                most = self.b.binary("udiv", i64(_MOST_ELEMENTS), positive, "most")
                self._conditions.append(self.b.icmp("ule", total, most, "valid"))
            total = size if total is None else self.b.mul(total, size, "count")

    def emit(self) -> None:
        """Stop the program unless all conditions hold."""
        if not self._conditions:
            return
        all_: Value = self._conditions[0]
        for condition in self._conditions[1:]:
            all_ = self.b.binary("and", all_, condition, "valid")
        self.helpers.call(self.b, "check", [("valid", I1)], [all_], _emit_check)
        self._conditions = []


def _emit_check(b: TensorBuilder, parameters: dict[str, Local]) -> None:
    """`if (!valid) trap();`."""
    stop = b.new_block("stop")
    end = b.new_block("end", stop)
    b.branch_if(parameters["valid"], end, stop)
    b.at_end(stop)
    emit_trap(b)
    b.at_end(end)


@dataclass(eq=False)
class VectorEntries:
    """The entries of a function's vectors.

    Attributes:
        b: Where entries are extracted.
        folder: Finds those that are constant or inserted.
    """

    b: Builder
    folder: ConstantFolder
    _origins: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, vector: Value) -> list[Value]:
        """All entries, as i64; constants where they are known."""
        assert isinstance(vector.type, VectorType)
        return [self._entry(vector, index) for index in range(vector.type.count)]

    def is_same(self, a: Value, b: Value) -> bool:
        """Whether two values are known to be equal."""
        return a == b or (str(a) in self._origins and self._origins.get(str(a)) == self._origins.get(str(b)))

    def _entry(self, vector: Value, index: int) -> Value:
        found = self.folder.entry(vector, index)
        if isinstance(found, int):
            return i64(found)
        entry = found if found is not None else self.b.extract_element(vector, index, "entry")
        extent = self.b.cast("sext", entry, I64, "extent")
        self._origins[str(extent)] = str(found) if found is not None else f"{vector}[{index}]"
        return extent


def entry_symbol(folder: ConstantFolder, vector: Value, index: int) -> str | int:
    """The symbol of an entry: entries with the same symbol are equal."""
    found = folder.entry(vector, index)
    return found if isinstance(found, int) else f"{vector}[{index}]" if found is None else str(found)
