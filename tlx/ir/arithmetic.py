"""Integer arithmetic of constants, as LLVM's instructions define it on bits."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final


def as_signed(bits: int, width: int) -> int:
    """The signed number of the lowest bits of a number."""
    half = 1 << (width - 1)
    return (bits + half) % (2 * half) - half


OPERATIONS: Final[dict[str, Callable[[int, int, int], int | None]]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "shl": lambda a, b, width: a << b if b < width else None,
    "lshr": lambda a, b, width: a >> b if b < width else None,
    "ashr": lambda a, b, width: as_signed(a, width) >> b if b < width else None,
    "udiv": lambda a, b, _: a // b if b else None,
    "urem": lambda a, b, _: a % b if b else None,
}
"""From unsigned operands and their width to the result, before it is wrapped to the width; None for poison."""

_PREDICATES: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def fold_integers(opcode: str, a: int, b: int, width: int) -> int | None:
    """The unsigned result of a binary instruction; None for poison, and for opcodes that are not folded."""
    mask = (1 << width) - 1
    compute = OPERATIONS.get(opcode)
    result = compute(a & mask, b & mask, width) if compute is not None else None
    return None if result is None else result & mask


def compare_integers(predicate: str, a: int, b: int, width: int) -> bool:
    """Whether a predicate of `icmp` holds."""
    if predicate.startswith("s"):
        a, b = as_signed(a, width), as_signed(b, width)
    else:
        a, b = a % (1 << width), b % (1 << width)
    return _PREDICATES[predicate[-2:]](a, b)
