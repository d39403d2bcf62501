"""Ordinary LLVM instructions that work element by element: what they are, apart from their operands' width.

The same operation is applied to tiles by stage 2 and to registers by stage 3.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tlx.intrinsics.elementwise import ELEMENTWISE
from tlx.ir.builder import Builder
from tlx.ir.module import Instruction
from tlx.ir.opcodes import BINARY, CASTS
from tlx.ir.types import BFLOAT, HALF, IntType, Type, VectorType, bits_of, scalar_of
from tlx.ir.values import Value

UNARY: Final = frozenset(row.name for row in ELEMENTWISE)
"""The tensor operations that compute each element from the same element of one operand."""
MATH: Final = UNARY - {"relu", "sqrt", "fabs", "floor", "ceil"}
"""Those of them that are elementary functions: code of our own in the end."""
DIVISIONS: Final = frozenset({"sdiv", "udiv", "srem", "urem"})
_UNARY: Final = frozenset({"fneg", "freeze"})
_COMPARES: Final = frozenset({"icmp", "fcmp"})
_FAST: Final = frozenset({"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"})
_SUFFIX: Final = re.compile(r"(?:\.(?:v\d+)?(?:i|f|bf)\d+)+$")
_OVERLOADED_BY_RESULT_AND_FIRST: Final = frozenset(
    f"llvm.{n}" for n in ("fptosi.sat", "fptoui.sat", "lrint", "llrint", "lround", "llround", "scmp", "ucmp")
)
_OVERLOADED_BY_RESULT_AND_SECOND: Final = frozenset({"llvm.powi", "llvm.ldexp"})
_MOVES: Final = frozenset({"select", "freeze", "bitcast"})


@dataclass(frozen=True, slots=True)
class Operation:
    """An elementwise instruction without operands and type.

    Attributes:
        opcode: LLVM's opcode.
        flags: `nsw`, `fast`, ... as written.
        predicate: Of comparisons.
        callee: Of calls: the intrinsic's name without the suffix of its types.
    """

    opcode: str
    flags: tuple[str, ...] = ()
    predicate: str = ""
    callee: str = ""

    @classmethod
    def of(cls, instruction: Instruction) -> Operation | None:
        """The operation of an instruction, None where it does not work element by element."""
        opcode = instruction.opcode
        if opcode == "call":
            name = (instruction.callee or "").strip('"')
            if not name.startswith("llvm.") or not isinstance(instruction.type, VectorType):
                return None
            return cls(opcode, tuple(f for f in instruction.flags if f in _FAST), "", _SUFFIX.sub("", name))
        if opcode in BINARY | CASTS | _UNARY | _COMPARES or opcode == "select":
            return cls(opcode, instruction.flags, instruction.predicate)
        return None

    @property
    def title(self) -> str:
        """How remarks call it: `fadd`, `llvm.fma`."""
        return self.callee or self.opcode

    def emit(self, b: Builder, type_: Type, operands: Sequence[Value], name: str = "") -> Value:
        """The instruction on operands of any width."""
        words = " ".join(self.flags)
        if self.opcode == "call":
            return self._call(b, type_, operands, words, name)
        head = " ".join(x for x in (self.opcode, words, self.predicate) if x)
        if self.opcode == "select":
            spelled = ", ".join(o.typed for o in operands)
        else:
            spelled = ", ".join([operands[0].typed, *map(str, operands[1:])])
        tail = f" to {type_}" if self.opcode in CASTS else ""
        made = b.emit(self.opcode, type_, operands, f"{head} {spelled}{tail}", name)
        made.flags, made.predicate = self.flags, self.predicate
        return made.value

    def _call(self, b: Builder, type_: Type, operands: Sequence[Value], words: str, name: str) -> Value:
        result = b.call_intrinsic(self.callee, self._overloads(type_, operands), type_, operands, name)
        if words:
            made = b.block.instructions[b.index - 1]
            made.text = made.text.replace("= call ", f"= call {words} ", 1)
            made.flags = self.flags
        return result

    def _overloads(self, type_: Type, operands: Sequence[Value]) -> list[Type]:
        if self.callee in _OVERLOADED_BY_RESULT_AND_FIRST:
            return [type_, operands[0].type]
        if self.callee in _OVERLOADED_BY_RESULT_AND_SECOND:
            return [type_, operands[1].type]
        if self.callee == "llvm.is.fpclass":
            return [operands[0].type]
        return [type_]

    def bits(self, types: Sequence[Type]) -> int:
        """Width that its elements, of these types, are worked on in: bfloat and half as float, i1 as nothing.

        What has only bfloat operands and results works on registers of them, as two of float each.
        """
        if self.callee != "llvm.fma" and all(scalar_of(t) == BFLOAT for t in types):
            return unary_bits(BFLOAT)
        return max((working_bits(t, moved=self.opcode in _MOVES) for t in types), default=1)


def working_bits(type_: Type, *, moved: bool = False) -> int:
    """Width that elements of a type (or vector) are worked on in, or only `moved` about in."""
    element = scalar_of(type_)
    if element in (BFLOAT, HALF):
        return 16 if moved else 32
    return bits_of(element)


def unary_bits(type_: Type) -> int:
    """Width that elements are worked on in by what makes one of another of the same type."""
    return working_bits(type_, moved=scalar_of(type_) == BFLOAT)


def is_mask(type_: Type) -> bool:
    """Whether elements are i1."""
    return scalar_of(type_) == IntType(1)
