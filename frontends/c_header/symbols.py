"""Names of placeholder functions: `tensor_` + operation + anything.

tensor_reduce_add            llvm.tensor.reduce.add
tensor_matmul_v16            llvm.tensor.matmul; what follows the operation is the program's own affair ...
tensor_typeinfo_f32          ... but for an element type, which says what C's calling convention forgets
tensor_load_bf16_left
tensor_matmul15              digits may follow directly, but for `exp` and `log`: `exp2` is another operation than `exp`
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from tlx import diagnostics
from tlx.intrinsics import INTRINSICS, Intrinsic
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, Type

PREFIX: Final = "tensor_"
_DIGITS: Final = "0123456789"
ELEMENTS: Final[dict[str, Type]] = {
    "i8": I8,
    "i16": I16,
    "i32": I32,
    "i64": I64,
    "f16": HALF,
    "bf16": BFLOAT,
    "f32": FLOAT,
    "f64": DOUBLE,
}


@dataclass(frozen=True, eq=False)
class Placeholder:
    """What a function's name says.

    Attributes:
        symbol: The name.
        intrinsic: The operation.
        element: Element type that the name gives, None if it gives none.
    """

    symbol: str
    intrinsic: Intrinsic
    element: Type | None


def operation_name(intrinsic_name: str) -> str:
    """The name of an operation in C: `reduce.add` is `reduce_add`."""
    return intrinsic_name.replace(".", "_")


@cache
def operations() -> dict[str, Intrinsic]:
    """Rows of the table by their names in C, other names included."""
    return {operation_name(name): row for row in INTRINSICS for name in (row.name, *row.aliases)}


def plain(name: str) -> str:
    r"""The symbol behind a global's name: clang writes an assembler name as `"\01name"`."""
    return name.strip('"').removeprefix("\\01")


def is_candidate(name: str) -> bool:
    """Whether a global's name looks like that of a placeholder."""
    return plain(name).startswith(PREFIX)


def placeholder(name: str) -> Placeholder | None:
    """What a global's name says, None if it names no operation; the longest operation wins."""
    symbol = plain(name)
    if not symbol.startswith(PREFIX):
        return None
    words = symbol.removeprefix(PREFIX).split("_")
    for count in range(len(words), 0, -1):
        row = _operation("_".join(words[:count]))
        if row is not None:
            element = ELEMENTS.get(words[count]) if count < len(words) else None
            return Placeholder(symbol, row, element)
    return None


def _operation(words: str) -> Intrinsic | None:
    """The operation of a name, which digits may follow where no other operation's name is made of it and digits."""
    known = operations()
    stem = words.rstrip(_DIGITS)
    is_stem = any(name != stem and name.rstrip(_DIGITS) == stem for name in known)
    return known.get(words) or (None if is_stem else known.get(stem))


def nearest(name: str) -> str | None:
    """The placeholder that a misspelled name probably means."""
    words = plain(name).removeprefix(PREFIX)
    near = diagnostics.nearest(words, operations(), cutoff=0.75)
    return f"{PREFIX}{near}" if near else None
