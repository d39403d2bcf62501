"""Inline assembly without instructions, which gives what it is given, and such as asks the machine what it is.

The evaluator's machine has no feature at all. A program that chooses kernels by what its processor has takes those for
the weakest, then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from tlx.diagnostics import EvaluationError
from tlx.evaluate.scope import Frame, Scope, Step
from tlx.ir.module import Instruction
from tlx.ir.types import VOID, StructType
from tlx.ir.values import Text

_EMPTY: Final = re.compile(r'asm (sideeffect )?"",')
_TIED: Final = re.compile(r'"=\w+,0(,~\{[^"]*)?"')
"""One result, in the register of the only operand."""
_QUESTION: Final = re.compile(r'"(cpuid|xgetbv|syscall)"')
Answer = Callable[[str, Sequence[int]], Sequence[int]]


def _nothing(_instruction: str, _numbers: Sequence[int]) -> Sequence[int]:
    return (0, 0, 0, 0)


answer: Answer = _nothing
"""Registers after an instruction, by its name and the numbers that it is given; tests speak for other machines."""


def _unchanged(scope: Scope, instruction: Instruction, callee: str) -> Step:
    """Assembly without instructions.

    Raises:
        EvaluationError: A result is what happens to be in a register.
    """
    if instruction.type == VOID:
        return lambda _frame: None
    if not _TIED.search(callee):
        raise EvaluationError("the result of this inline assembly is not its operand")
    out, source = scope.result(instruction), scope.slot(instruction.args[0])

    def step(frame: Frame) -> None:
        frame[out] = frame[source]

    return step


def assembly(scope: Scope, instruction: Instruction, callee: Text) -> Step:
    """A call of assembly.

    Raises:
        EvaluationError: It has instructions that do not ask what the machine is.
    """
    if _EMPTY.search(str(callee)):
        return _unchanged(scope, instruction, str(callee))
    asked = _QUESTION.search(str(callee))
    if asked is None:
        raise EvaluationError("the evaluator does not run inline assembly")
    out, type_ = scope.result(instruction), instruction.type
    slots = [scope.slot(a) for a in instruction.args]

    def step(frame: Frame) -> None:
        registers: list[Any] = list(answer(asked[1], [frame[s] for s in slots]))
        frame[out] = registers[: len(type_.elements)] if isinstance(type_, StructType) else registers[0]

    return step
