"""The context of emission: the target, allocation of temporaries, remarks; for rules, also the operands in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import Span, size_text
from tlx.ir.tensors.model import TensorOp
from tlx.ir.types import Type, bytes_of
from tlx.llvm.openmp import Threads
from tlx.lower.memory.views import Storage
from tlx.lower.remarks import Remarks
from tlx.lower.to_2d.analysis.tensor_operations import STAGE
from tlx.lower.to_2d.memory.operand_views import OperandViews
from tlx.target.target import Target

BOTH_STRIDED: Final = "its rows and columns are both strided in memory"
"""Why no 2-D load can read an operand."""


@dataclass(frozen=True, eq=False)
class EmitContext:
    """The context of code that emits IR.

    Attributes:
        target: The machine that the function is lowered for.
        threads: What runs large kernels on several threads.
        remarks: Receives remarks on copies and temporaries.
        allocate: Reserves a private buffer, given element type, number of elements and stem of its name.
    """

    target: Target
    threads: Threads
    remarks: Remarks
    allocate: Callable[[Type, int, str], Storage]

    def remark_missed(self, message: str, span: Span | None) -> None:
        """Report work that a better input program would avoid."""
        self.remarks.add("missed", STAGE, message, span)

    def allocate_copy(self, op: TensorOp, element: Type, count: int, name: str, reason: str = BOTH_STRIDED) -> Storage:
        """Reserve a buffer for a copy of an operand, and report why the copy is made."""
        self.remark_copy(op, element, count, name, reason)
        return self.allocate(element, count, name)

    def remark_copy(self, op: TensorOp, element: Type, count: int, name: str, reason: str) -> None:
        """Report a copy of an operand."""
        size = size_text(count * bytes_of(element))
        self.remark_missed(f"copy of {size} of operand {name}, because {reason}", op.instruction.span)


@dataclass(frozen=True, eq=False)
class RuleContext(EmitContext):
    """The context of rules.

    Attributes:
        memory: The operands of all operations as views of memory.
    """

    memory: OperandViews

    def is_in_place(self, op: TensorOp, operand: int) -> bool:
        """Whether an operand of a concatenation or padding is already where it belongs."""
        part = self.memory.part_of(self.memory.facts.vectors.root(op.tensors[operand].source))
        return part is not None and part.whole.instruction is op.instruction and part.operand == operand
