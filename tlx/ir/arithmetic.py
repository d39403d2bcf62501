"""Integer arithmetic whose result is known where it is written down, so that no instruction is needed."""

from __future__ import annotations

from tlx.ir.types import IntType, Type
from tlx.ir.values import ConstInt, Value


def known_result(opcode: str, lhs: Value, rhs: Value) -> Value | None:
    """What `opcode lhs, rhs` is without an instruction: of integer constants, or with a neutral element; or None."""
    if not isinstance(rhs, ConstInt):
        return known_result(opcode, rhs, lhs) if opcode in ("add", "mul") and isinstance(lhs, ConstInt) else None
    if isinstance(lhs, ConstInt) and opcode in ("add", "sub", "mul"):
        number = {"add": lhs.value + rhs.value, "sub": lhs.value - rhs.value, "mul": lhs.value * rhs.value}[opcode]
        return ConstInt(lhs.type, _wrapped(lhs.type, number))
    if (opcode in ("add", "sub") and rhs.value == 0) or (opcode in ("mul", "udiv") and rhs.value == 1):
        return lhs
    if opcode == "mul" and rhs.value == 0:
        return rhs
    if opcode == "udiv" and isinstance(lhs, ConstInt) and rhs.value > 0 <= lhs.value:
        return ConstInt(lhs.type, lhs.value // rhs.value)
    return None


def _wrapped(type_: Type, number: int) -> int:
    """The signed number that is left of a result in the type's bits."""
    assert isinstance(type_, IntType)
    half = 1 << (type_.bits - 1)
    return (number + half) % (2 * half) - half
