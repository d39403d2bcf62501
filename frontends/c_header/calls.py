r"""Calls of placeholders, in whatever spelling clang chose.

    call i32 @tensor_typeinfo(...)                                      with a prototype
    call i32 (...) @tensor_typeinfo(...)                                variadic, or without a prototype
    call i32 (T*, ...) bitcast (i32 (...)* @tensor_typeinfo to ...)(...)  without a prototype, typed pointers
    call i32 @"\01tensor_typeinfo"(...)                                an assembler name

Only a call's own operands and result are believed: a declaration may say something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tlx.diagnostics import Note, VerifyError
from tlx.frontends.c_header.symbols import Placeholder, is_candidate, placeholder
from tlx.ir.module import Block, Function, Instruction
from tlx.ir.tensor_calls import operand_span
from tlx.ir.types import VOID, Type
from tlx.ir.values import ConstExpr, Global, Value


@dataclass(eq=False)
class PlaceholderCall:
    """A call of a placeholder.

    Attributes:
        block: Where it stands.
        instruction: The call; steps change it in place, so that its span and its users stay.
        placeholder: What the callee's name says.
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
        """Give the call other arguments, another result type or another callee, all spelled plainly."""
        call = self.instruction
        type_ = type_ or call.type
        callee = Global(VOID, name or f'"{self.placeholder.symbol}"')
        body = f"call {type_} {callee}({', '.join(a.typed for a in args)}){call.debug_location}"
        call.opcode, call.type, call.operands = "call", type_, [callee, *args]
        call.text = body if call.result is None else f"%{call.result} = {body}"
        call.arg_attributes, call.spans, call.flags = ("",) * len(args), None, ()
        call.trailer = call.debug_location


def called(instruction: Instruction) -> str | None:
    """Name of the function that an instruction calls, also through a cast of its type."""
    if not instruction.is_call:
        return None
    callee = instruction.operands[0]
    while isinstance(callee, ConstExpr) and callee.opcode == "bitcast":
        callee = callee.operands[0]
    return callee.name if isinstance(callee, Global) else None


def placeholder_calls(function: Function) -> list[PlaceholderCall]:
    """The calls of placeholders in a function, in the order of the text."""
    return list(_calls(function))


def _calls(function: Function) -> Iterator[PlaceholderCall]:
    for block in function.blocks:
        for instruction in block.instructions:
            name = called(instruction)
            if name is None or not is_candidate(name):
                continue
            known = placeholder(name)
            if known is not None:
                yield PlaceholderCall(block, instruction, known)
