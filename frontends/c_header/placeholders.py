r"""Placeholder functions: the meaning of their names, and their calls in all spellings that clang writes.

A name is `tensor_` + operation + anything:

tensor_reduce_add            llvm.tensor.reduce.add
tensor_matmul_v16            llvm.tensor.matmul; any suffix is allowed and ignored ...
tensor_typeinfo_f32          ... except an element type, which C's calling convention may lose
tensor_load_bf16_left
tensor_matmul15              digits may follow directly, but for `exp` and `log`: `exp2` is another operation than `exp`

    call i32 @tensor_typeinfo(...)                                      with a prototype
    call i32 (...) @tensor_typeinfo(...)                                variadic, or without a prototype
    call i32 (T*, ...) bitcast (i32 (...)* @tensor_typeinfo to ...)(...)  without a prototype, typed pointers
    call i32 @"\01tensor_typeinfo"(...)                                an assembler name
    call <16 x float> @_ZN3tlx13tensor_matmulIDv16_fEET_iz(...)        tlx::tensor_matmul<T> of C++

Types are those of the operands and the result of a call; the declaration may differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from tlx import diagnostics
from tlx.diagnostics import Note, VerifyError
from tlx.intrinsics import INTRINSICS, Intrinsic
from tlx.ir.functions import Function
from tlx.ir.instructions import Block, Instruction
from tlx.ir.tensors.calls import operand_span
from tlx.ir.types import BFLOAT, DOUBLE, FLOAT, HALF, I8, I16, I32, I64, VOID, Type
from tlx.ir.values import ConstExpr, Global, Value

PREFIX: Final = "tensor_"
_TEMPLATE: Final = re.compile(rf"_ZN3tlx(\d+)({PREFIX}\w+)")
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
    """The meaning of a function's name.

    Attributes:
        symbol: The name.
        intrinsic: The operation.
        element: Element type that the name gives, None if it gives none.
    """

    symbol: str
    intrinsic: Intrinsic
    element: Type | None


def c_name(intrinsic_name: str) -> str:
    """The name of an operation in C: `reduce.add` is `reduce_add`."""
    return intrinsic_name.replace(".", "_")


@cache
def operations_by_c_name() -> dict[str, Intrinsic]:
    """Rows of the table by their names in C, including aliases."""
    return {c_name(name): row for row in INTRINSICS for name in (row.name, *row.aliases)}


def symbol_name(name: str) -> str:
    r"""The symbol of a global, of C++'s templates without scope and types.

    clang writes an assembler name as `"\01name"`, and `tlx::tensor_matmul<T>` as `_ZN3tlx13tensor_matmulI...`.
    """
    template = _TEMPLATE.match(name)
    return template[2][: int(template[1])] if template else name.strip('"').removeprefix("\\01")


def is_candidate(name: str) -> bool:
    """Whether a global's name looks like that of a placeholder."""
    return symbol_name(name).startswith(PREFIX)


def parse_placeholder(name: str) -> Placeholder | None:
    """The placeholder that a global's name denotes, None if it names no operation; the longest operation wins."""
    symbol = symbol_name(name)
    if not symbol.startswith(PREFIX):
        return None
    words = symbol.removeprefix(PREFIX).split("_")
    for count in range(len(words), 0, -1):
        row = _longest_operation("_".join(words[:count]))
        if row is not None:
            element = ELEMENTS.get(words[count]) if count < len(words) else None
            return Placeholder(symbol, row, element)
    return None


def _longest_operation(words: str) -> Intrinsic | None:
    """The operation of a name; digits may follow unless name and digits are another operation, as in `exp2`."""
    known = operations_by_c_name()
    stem = words.rstrip(_DIGITS)
    is_stem = any(name != stem and name.rstrip(_DIGITS) == stem for name in known)
    return known.get(words) or (None if is_stem else known.get(stem))


def nearest_placeholder(name: str) -> str | None:
    """The placeholder that a misspelled name probably means."""
    words = symbol_name(name).removeprefix(PREFIX)
    near = diagnostics.nearest(words, operations_by_c_name(), cutoff=0.75)
    return f"{PREFIX}{near}" if near else None


@dataclass(eq=False)
class PlaceholderCall:
    """A call to a placeholder.

    Attributes:
        block: Its block.
        instruction: The call; steps change it in place, which keeps its span and its users.
        placeholder: The meaning of the callee's name.
    """

    block: Block
    instruction: Instruction
    placeholder: Placeholder

    @property
    def args(self) -> list[Value]:
        """The arguments."""
        return self.instruction.args

    @property
    def index(self) -> int:
        """Position in its block."""
        return next(i for i, other in enumerate(self.block.instructions) if other is self.instruction)

    def error(self, message: str, value: Value | None = None, notes: Sequence[Note] = ()) -> VerifyError:
        """An error at the call, or at one of its arguments."""
        text = f"{self.placeholder.symbol}: {message}"
        return VerifyError(text, operand_span(self.instruction, value), list(notes))

    def rewrite(self, args: Sequence[Value], type_: Type | None = None, name: str | None = None) -> None:
        """Give the call other arguments, another result type or another callee."""
        call = self.instruction
        type_ = type_ or call.type
        callee = Global(VOID, name or f'"{self.placeholder.symbol}"')
        body = f"call {type_} {callee}({', '.join(a.typed for a in args)}){call.debug_location}"
        call.opcode, call.type, call.operands = "call", type_, [callee, *args]
        call.text = body if call.result is None else f"%{call.result} = {body}"
        call.arg_attributes, call.spans, call.flags = ("",) * len(args), None, ()
        call.trailer = call.debug_location


def callee_name(instruction: Instruction) -> str | None:
    """Name of the function that an instruction calls, also through a cast of its type."""
    if not instruction.is_call:
        return None
    callee = instruction.operands[0]
    while isinstance(callee, ConstExpr) and callee.opcode == "bitcast":
        callee = callee.operands[0]
    return callee.name if isinstance(callee, Global) else None


def placeholder_calls(function: Function) -> list[PlaceholderCall]:
    """The calls to placeholders in a function, in the order of the text."""
    return list(_calls(function))


def _calls(function: Function) -> Iterator[PlaceholderCall]:
    for block in function.blocks:
        for instruction in block.instructions:
            name = callee_name(instruction)
            if name is None or not is_candidate(name):
                continue
            known = parse_placeholder(name)
            if known is not None:
                yield PlaceholderCall(block, instruction, known)
