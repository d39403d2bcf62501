"""Prototypes: parameters and results of functions in terms of numpy. A module from the cache brings its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlx.diagnostics import Span
    from tlx.ir.types import Type


@dataclass(frozen=True, slots=True)
class CallParameter:
    """A parameter of a function.

    Attributes:
        name: Its name in the IR, with `%`.
        type: Its type.
        element: For pointers: element type of the memory; None if the IR does not determine it.
        stored_type: For pointers: what the memory probably holds: `element`, or the floating-point type whose bits are
            also accessed as integers, or copied; None if unknown.
        count: For pointers: minimum number of elements accessed from there on; None if unknown.
        is_bounded: For pointers: whether all sizes and offsets of accesses are constant, so that `count` is exact.
        written: For pointers: whether the function stores to the memory.
        align: For pointers: alignment in bytes that the IR promises.
        size: For pointers: number of bytes that the memory must have for the call itself.
        abi_attributes: The attributes that determine how it is passed: `byval(<4 x float>) align 16`.
        byval_bytes: For pointers: number of bytes that are copied for the function (`byval`), with trailing padding.
        is_result: For pointers: whether the function returns its result there (`sret`).
        is_constant: For pointers: whether the memory is constant over calls (`"tlx-constant"`).
    """

    name: str
    type: Type
    element: Type | None = None
    count: int | None = None
    written: bool = False
    align: int = 1
    is_bounded: bool = True
    size: int = 0
    abi_attributes: str = ""
    byval_bytes: int = 0
    is_result: bool = False
    stored_type: Type | None = None
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class Prototype:
    """A function that can be called: its name, result and parameters.

    Attributes:
        convention: Its calling convention in the IR; empty for C's.
        abi_attributes: The attributes that determine how its result is passed.
        variadic: Whether it takes further arguments.
        preserves_registers: Whether it preserves the callee-saved registers.
        span: Where it is defined.
    """

    name: str
    result: Type
    parameters: tuple[CallParameter, ...]
    convention: str = ""
    abi_attributes: str = ""
    variadic: bool = False
    preserves_registers: bool = True
    span: Span | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is called like a C function of its types."""
        return not (
            self.convention or self.abi_attributes or self.variadic or any(p.abi_attributes for p in self.parameters)
        )


def symbol_name(name: str) -> str:
    r"""A name as in the object file: without quotes, and with escapes such as `\5C` resolved."""
    if not name.startswith('"'):
        return name
    raw = re.sub(rb"\\([0-9a-fA-F]{2})", lambda m: bytes([int(m.group(1), 16)]), name[1:-1].encode())
    return raw.decode(errors="surrogateescape")
