"""Instructions and basic blocks, the opcodes of LLVM assembly, and which of them access memory."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tlx.diagnostics import Span
from tlx.ir.types import LABEL, Type
from tlx.ir.values import Global, Local, Value

BINARY_OPCODES: Final = frozenset(
    "add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem".split()
)
CAST_OPCODES: Final = frozenset(
    "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp "
    "ptrtoint ptrtoaddr inttoptr bitcast addrspacecast".split()
)
CALL_OPCODES: Final = frozenset({"call", "invoke", "callbr"})
TERMINATORS: Final = frozenset(
    "ret br switch indirectbr invoke callbr resume unreachable cleanupret catchret catchswitch".split()
)
OPCODES: Final = (
    BINARY_OPCODES
    | CAST_OPCODES
    | CALL_OPCODES
    | TERMINATORS
    | frozenset(
        "fneg freeze icmp fcmp select extractelement insertelement shufflevector extractvalue insertvalue alloca load "
        "store getelementptr phi landingpad catchpad cleanuppad atomicrmw cmpxchg fence va_arg".split()
    )
)
INSTRUCTION_FLAGS: Final = frozenset(
    "nuw nsw exact disjoint nneg samesign inbounds nusw fast nnan ninf nsz arcp contract reassoc afn volatile atomic "
    "weak tail musttail notail inalloca swifterror".split()
)
TAIL_MARKERS: Final = frozenset({"tail", "musttail", "notail"})


@dataclass(eq=False, slots=True)
class Instruction:
    """One instruction or debug record: its text and the parsed facts.

    Attributes:
        opcode: LLVM's opcode; `call` also for tail calls; `#dbg` for debug records and calls of debug intrinsics.
        type: Type of the result; `void` if it has none.
        operands: Every value in the text, in order of appearance, labels included; a callee comes before the
            arguments of its call.
        text: Its characters, from the result's name to the last metadata attachment.
        result: Name of the result without `%`; None if it has none.
        lead: White space and comments before it.
        spans: Start and end of each operand's value in `text`.
        span: Where it is in the user's file; None for instructions that the lowering made.
        source_type: Element type of `getelementptr`; allocated type of `alloca`; function type of calls.
        predicate: Predicate of `icmp` and `fcmp`; operation of `atomicrmw`.
        indices: Indices of `extractvalue` and `insertvalue`.
        arg_attributes: Attributes of each argument of a call, as text.
        flags: Words such as nsw, fast, inbounds, volatile, tail.
        align: Alignment in bytes, if the text gives one.
        trailer: What follows the operands: call attributes, alignment, metadata attachments.
    """

    opcode: str
    type: Type
    operands: list[Value]
    text: str
    result: str | None = None
    lead: str = "\n  "
    spans: list[tuple[int, int]] | None = None
    span: Span | None = None
    source_type: Type | None = None
    predicate: str = ""
    indices: tuple[int, ...] = ()
    arg_attributes: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    align: int | None = None
    trailer: str = ""

    @property
    def value(self) -> Local:
        """The result as an operand.

        Raises:
            ValueError: The instruction has no result.
        """
        if self.result is None:
            message = f"instruction has no result: {self.text}"
            raise ValueError(message)
        return Local(self.type, self.result)

    @property
    def is_call(self) -> bool:
        """Whether it is a call, invoke or callbr."""
        return self.opcode in CALL_OPCODES

    @property
    def callee(self) -> str | None:
        """Name (without `@`) of a directly called function."""
        if self.opcode not in CALL_OPCODES:
            return None
        called = self.operands[0]
        return called.name if isinstance(called, Global) else None

    @property
    def is_debug(self) -> bool:
        """Whether it is a debug record or a call of a debug intrinsic."""
        return self.opcode == "#dbg"

    @property
    def args(self) -> list[Value]:
        """Arguments of a call."""
        return self.operands[1 : 1 + len(self.arg_attributes)]

    @property
    def is_terminator(self) -> bool:
        """Whether it ends a block."""
        return self.opcode in TERMINATORS

    @property
    def incoming(self) -> list[tuple[Value, str]]:
        """(value, block name) pairs of a phi."""
        return [
            (value, label.name)
            for value, label in zip(self.operands[::2], self.operands[1::2], strict=True)
            if isinstance(label, Local)
        ]

    @property
    def successors(self) -> list[str]:
        """Names of the blocks that a terminator may branch to, one for each edge."""
        if not self.is_terminator:
            return []
        return [op.name for op in self.operands if isinstance(op, Local) and op.type == LABEL]

    @property
    def debug_location(self) -> str:
        """`, !dbg !N` if the instruction has one, else nothing."""
        match = re.search(r",\s*!dbg (!\d+|!DILocation\([^)]*\))", self.trailer)
        return f", !dbg {match.group(1)}" if match else ""


@dataclass(eq=False, slots=True)
class Block:
    """A basic block.

    Attributes:
        name: Its label without `%` and `:`; a number if LLVM numbers it.
        label: The label as spelled, with the white space before it; empty for an entry block without a label.
        instructions: In order; the last is the terminator.
    """

    name: str
    label: str = ""
    instructions: list[Instruction] = field(default_factory=list[Instruction])

    @property
    def terminator(self) -> Instruction:
        """The last instruction."""
        return self.instructions[-1]

    @property
    def phis(self) -> list[Instruction]:
        """The phi instructions."""
        return [i for i in self.instructions if i.opcode == "phi"]

    @property
    def value(self) -> Local:
        """The block as an operand of a branch."""
        return Local(LABEL, self.name)


_READING_OPCODES: Final = frozenset({"load", "va_arg"})
_WRITING_OPCODES: Final = frozenset(
    {"store", "atomicrmw", "cmpxchg", "fence", "call", "invoke", "callbr", "va_arg", "resume"}
)


def may_write(instruction: Instruction) -> bool:
    """Whether an instruction may write memory, as calls are assumed to do: callers treat pure functions separately."""
    if instruction.opcode == "load":
        return "volatile" in instruction.flags or "atomic" in instruction.flags
    return instruction.opcode in _WRITING_OPCODES


def may_read(instruction: Instruction) -> bool:
    """Whether an instruction may read memory."""
    return instruction.opcode in _READING_OPCODES or (may_write(instruction) and instruction.opcode != "store")
