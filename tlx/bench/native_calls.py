"""Loops of machine code around calls, so that neither Python nor ctypes is in the figures.

repeat = repeated([Step(address, ("ptr", x), ("i32", 5)), ...])
repeat(1000)

define void @repeat(i64 %n) {
loop:                                       ; %n times
  call void inttoptr (i64 ADDRESS to ptr)(ptr inttoptr (i64 X to ptr), i32 5)
  ...
}
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tlx.jit import compile as compile_module

Repeat = Callable[[int], object]


@dataclass(frozen=True)
class Step:
    """A call.

    Attributes:
        address: Of the function.
        arguments: (LLVM type, value) of each; pointers are addresses.
    """

    address: int
    arguments: tuple[tuple[str, int | float], ...]

    def text(self) -> str:
        """The call as LLVM IR."""
        given = ", ".join(f"{type_} {_constant(type_, value)}" for type_, value in self.arguments)
        return f"  call void inttoptr (i64 {self.address} to ptr)({given})\n"


def repeated(steps: Sequence[Step], keep: object = None) -> Repeat:
    """A function that makes the calls one after the other, the given number of times."""
    body = "".join(step.text() for step in steps)
    return loop(f"define void @repeat(i64 %n) {_around(body)}", keep)


def loop(text: str, keep: object = None) -> Repeat:
    """The function `@repeat(i64 n)` of a module."""
    compiled = compile_module(text, entry="repeat")
    call = compiled.entry.unchecked

    def repeat(count: int, _keep: object = (compiled, keep)) -> Any:
        return call(count)

    return repeat


def _around(body: str) -> str:
    return (
        "{\nentry:\n  br label %loop\nloop:\n  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
        f"{body}  %next = add i64 %i, 1\n  %again = icmp ult i64 %next, %n\n"
        "  br i1 %again, label %loop, label %end\nend:\n  ret void\n}\n"
    )


def _constant(type_: str, value: float) -> str:
    if type_ == "ptr":
        return f"inttoptr (i64 {int(value)} to ptr)"
    if type_ == "float":
        bits = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<f", value))[0]))[0]
        return f"0x{bits:016X}"
    if type_ == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return str(int(value))
