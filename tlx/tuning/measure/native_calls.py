"""Machine-code loops around calls, so that measurements include neither Python nor ctypes.

repeat = repeated([Step(address, ("ptr", x), ("i32", 5)), ...])
repeat(1000)

define void @repeat(i64 %n) {
again:                                      ; %n times
  call void inttoptr (i64 ADDRESS to ptr)(ptr inttoptr (i64 X to ptr), i32 5)
  ...
}
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tlx.api.compiler import compile as compile_module

Repeat = Callable[[int], object]
LOOP_LABEL: Final = "again"


@dataclass(frozen=True)
class NativeCall:
    """A call of a native function.

    Attributes:
        address: Address of the function.
        arguments: Arguments as (LLVM type, value); pointers are addresses.
    """

    address: int
    arguments: tuple[tuple[str, int | float], ...]

    def text(self) -> str:
        """The call as LLVM IR."""
        given = ", ".join(f"{type_} {_constant(type_, value)}" for type_, value in self.arguments)
        return f"  call void inttoptr (i64 {self.address} to ptr)({given})\n"


def call_loop(steps: Sequence[NativeCall], keep: object = None) -> Repeat:
    """A function that makes the calls in order, the given number of times."""
    body = "".join(step.text() for step in steps)
    return compile_loop(loop_function(body), keep)


def compile_loop(text: str, keep: object = None) -> Repeat:
    """The function `@repeat(i64 n)` of a module."""
    compiled = compile_module(text, entry="repeat")
    call = compiled.entry.unchecked

    def repeat(count: int, _keep: object = (compiled, keep)) -> Any:
        return call(count)

    return repeat


def loop_function(body: str, last: str = LOOP_LABEL, first: str = "", attributes: str = "") -> str:
    """The function `@repeat`, which runs `first` once and a body the given number of times.

    Args:
        body: Instructions that begin in the block `LOOP_LABEL`.
        last: Block that they end in.
        first: Instructions before the loop.
        attributes: Attributes of the function.
    """
    around = counted_loop(LOOP_LABEL, "entry", "%n", body, last=last)
    return f"define void @repeat(i64 %n) {attributes} {{\nentry:\n{first}{around}  ret void\n}}\n"


def counted_loop(name: str, before: str, limit: object, body: str, step: int = 1, last: str = "") -> str:
    """A loop that counts `%NAME.i` from 0 up to a limit, in steps; it runs at least once.

    Args:
        name: Name of its first block; the block after the loop is `NAME.end`.
        before: The block that it is entered from.
        limit: A number, or the name of a value.
        body: Instructions, starting with further phis.
        step: The increment.
        last: The last block of the body, if it has several.
    """
    return f"""  br label %{name}
{name}:
  %{name}.i = phi i64 [ 0, %{before} ], [ %{name}.next, %{last or name} ]
{body}  %{name}.next = add i64 %{name}.i, {step}
  %{name}.more = icmp ult i64 %{name}.next, {limit}
  br i1 %{name}.more, label %{name}, label %{name}.end
{name}.end:
"""


def _constant(type_: str, value: float) -> str:
    if type_ == "ptr":
        return f"inttoptr (i64 {int(value)} to ptr)"
    if type_ == "float":
        bits = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<f", value))[0]))[0]
        return f"0x{bits:016X}"
    if type_ == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return str(int(value))


def function_address(function: Any) -> int:
    """The address of a library's function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
