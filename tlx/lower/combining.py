"""Combining two vectors as a reduction does, element by element, as ordinary instructions."""

from __future__ import annotations

from typing import Final

from tlx.ir.builder import Builder
from tlx.ir.types import I1, FloatType, VectorType
from tlx.ir.values import Value
from tlx.lower.ordinary import Operation

EXTREMES: Final = frozenset({"max", "min"})


def combined(b: Builder, operation: str, x: Value, y: Value) -> Value:
    """Both combined by add, mul, max, min, and, or or xor. NaN wins in max and min."""
    best = better(b, operation, x, y)
    if operation not in EXTREMES or not _are_floats(x):
        return best
    return b.select(compared(b, "uno", x, x), x, best, "acc")


def better(b: Builder, operation: str, x: Value, y: Value, *, signed: bool = True) -> Value:
    """Both combined, where none of them is NaN; of integers the signed or unsigned extremes."""
    if operation not in EXTREMES:
        return b.binary(f"f{operation}" if _are_floats(x) and operation in ("add", "mul") else operation, x, y, "acc")
    sense = "gt" if operation == "max" else "lt"
    if _are_floats(x):
        return b.select(compared(b, f"o{sense}", x, y), x, y, "acc")
    return b.select(b.icmp(f"{'s' if signed else 'u'}{sense}", x, y), x, y, "acc")


def compared(b: Builder, predicate: str, x: Value, y: Value) -> Value:
    """`fcmp`."""
    assert isinstance(x.type, VectorType)
    return Operation("fcmp", (), predicate).emit(b, VectorType(x.type.count, I1), [x, y], "is")


def _are_floats(x: Value) -> bool:
    return isinstance(x.type, VectorType) and isinstance(x.type.element, FloatType)
