"""How functions of random programs are called: calling conventions, and attributes of parameters.

    define fastcc void @f0(ptr byval([64 x float]) align 4 %b0, ptr nest %b1)

They are drawn once a function is written, and mean the same to its callers in the program, to the evaluator and to
Python, which runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.fuzz.arrays import Buffer
from tlx.fuzz.choices import Choices
from tlx.numpy_types import dtype_of

OF_VECTORS: Final = ("", "fastcc", "swiftcc", "preserve_mostcc", "x86_64_sysvcc", "win64cc", "x86_regcallcc", "cc 8")
"""Conventions that LLVM passes and returns vectors right in."""
_OF_POINTERS: Final = (*OF_VECTORS[1:], "coldcc", "preserve_allcc", "x86_vectorcallcc", "cxx_fast_tlscc")
_CALLEE_POPS: Final = ("tailcc", "swifttailcc")  # LLVM passes nothing by value right in them
_REGISTERS: Final = ("nest", "inreg", "swiftself")
_ROOM: Final = 1 << 16


@dataclass(frozen=True)
class Calling:
    """How a function is called.

    Attributes:
        convention: Its calling convention; empty for C's.
        passing: An attribute of each parameter, or nothing.
    """

    convention: str = ""
    passing: tuple[str, ...] = ()

    def parameters(self, plain: Sequence[str]) -> str:
        """Parameters or arguments, `TYPE VALUE` each, with their attributes."""
        parts = (one.rsplit(" ", 1) for one in plain)
        passing = self.passing or ("",) * len(plain)
        return ", ".join(
            f"{type_} {word} {value}".replace("  ", " ") for (type_, value), word in zip(parts, passing, strict=True)
        )

    @property
    def prefix(self) -> str:
        """What stands in front of the result type."""
        return f"{self.convention} " if self.convention else ""


def _may_copy(choose: Choices, buffer: Buffer) -> bool:
    """Now and then also an array that is written, which nobody sees then."""
    return choose.chance(0.2) if buffer.written.any() else True


def draw(choose: Choices, buffers: Sequence[Buffer], *, typed: bool) -> Calling:
    """A way to call a function; of buffers that are passed by value, the function gets copies."""
    if not choose.chance(0.3):
        return Calling()
    convention = choose.choice(["", *_OF_POINTERS, *_CALLEE_POPS])
    registers = list(_REGISTERS)
    passing: list[str] = []
    for buffer in buffers:
        size = buffer.count * dtype_of(buffer.element).itemsize
        kind = choose.choice(["", "", "register", "value"])
        if kind == "register" and registers:
            passing.append(registers.pop(choose.below(len(registers))))
        elif (
            kind == "value"
            and size <= _ROOM
            and not typed
            and convention not in _CALLEE_POPS
            and _may_copy(choose, buffer)
        ):
            passing.append(f"byval([{buffer.count} x {buffer.element}]) align {dtype_of(buffer.element).itemsize}")
            buffer.is_copied = True
            buffer.written[:] = False
        else:
            passing.append("")
    return Calling(convention, tuple(passing))
