"""Conversions from and to formats of 8 bits: what calls of LLVM's intrinsics say, and their rules.

See `tlx.intrinsics.small_floats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import VerifyError
from tlx.intrinsics.small_floats import (
    FROM_SMALL,
    NEAREST,
    SMALL_FLOATS,
    TO_SMALL,
    SmallFloat,
    format_named,
    is_conversion,
)
from tlx.ir.instructions import Instruction
from tlx.ir.tensors.calls import operand_span
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I1, I8, Type, VectorType, scalar_of
from tlx.ir.values import ConstInt, Value

_FLOATS: Final = (HALF, BFLOAT, FLOAT, DOUBLE)


@dataclass(frozen=True)
class SmallConversion:
    """A conversion from or to a format of 8 bits.

    Attributes:
        format: The format.
        widens: Whether bytes become floats.
        saturates: Whether numbers beyond the largest one become the largest one.
    """

    format: SmallFloat
    widens: bool
    saturates: bool = False

    @classmethod
    def of(cls, callee: str, arguments: Sequence[Value]) -> SmallConversion:
        """The conversion of a call that has no mistake."""
        widens = callee.startswith(FROM_SMALL)
        last = arguments[-1]
        saturates = not widens and isinstance(last, ConstInt) and last.value != 0
        return cls(format_named(str(arguments[1])), widens, saturates)


def wrong_conversion(instruction: Instruction) -> VerifyError | None:
    """What is wrong with a call of one of the intrinsics; None if nothing is, or it is another instruction."""
    callee = (instruction.callee or "").strip('"') if instruction.is_call else ""
    if not is_conversion(callee):
        return None
    widens = callee.startswith(FROM_SMALL)
    mistake = _mistake(instruction.type, instruction.args, widens=widens)
    if mistake is None:
        return None
    message, operand = mistake
    span = instruction.span if operand is None else operand_span(instruction, operand)
    return VerifyError(f"{FROM_SMALL if widens else TO_SMALL}: {message}", span)


def _mistake(result: Type, arguments: Sequence[Value], *, widens: bool) -> tuple[str, Value | None] | None:
    """What is wrong with a call, and with which operand; None if nothing is."""
    count = 2 if widens else 4
    if len(arguments) != count:
        return f"expected {count} operands, got {len(arguments)}", None
    operand, named, *others = arguments
    narrow, wide = (operand.type, result) if widens else (result, operand.type)
    if scalar_of(narrow) != I8:
        return (
            f"only formats of 8 bits are supported, as i8 or vectors of i8, not {narrow}",
            operand if widens else None,
        )
    if scalar_of(wide) not in _FLOATS:
        return f"{wide} is not half, bfloat, float or double, or a vector of them", None if widens else operand
    if _count(narrow) != _count(wide):
        return f"operand and result must have the same number of elements, not {operand.type} and {result}", operand
    known = [format_.metadata for format_ in SMALL_FLOATS]
    if str(named) not in known:
        names = " and ".join(known)
        return f"the format {named} is not supported, only {names}", named
    if widens:
        return None
    rounding, saturates = others
    if str(rounding) != NEAREST:
        return f"the rounding mode {rounding} is not supported, only {NEAREST}", rounding
    if saturates.type != I1 or not isinstance(saturates, ConstInt):
        return "whether the result is clamped must be a constant i1", saturates
    return None


def _count(type_: Type) -> tuple[int, bool] | None:
    return (type_.count, type_.scalable) if isinstance(type_, VectorType) else None
