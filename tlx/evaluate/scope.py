"""What compiling a function needs to know: the machine's parts, and a slot for every value.

A running function is a list, its frame: slot 0 holds the result, slot 1 the stack regions, then come arguments,
results of instructions and constants. A step is a closure over slot numbers that works on a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from tlx.diagnostics import EvaluationError
from tlx.evaluate.codec import Codecs
from tlx.evaluate.layout import Layout
from tlx.evaluate.memory import Memory
from tlx.evaluate.symbols import Symbols
from tlx.evaluate.team import Team
from tlx.evaluate.values import Value
from tlx.ir.analysis import analyse
from tlx.ir.module import Function, Instruction, Module
from tlx.ir.tensors import FunctionTensors
from tlx.ir.values import Local
from tlx.ir.values import Value as Operand

Frame: TypeAlias = list[Any]
Step: TypeAlias = Callable[[Frame], None]
RESULT: Final = 0
STACK: Final = 1


@dataclass(eq=False)
class Context:
    """The parts of a machine that steps work with.

    Attributes:
        module: The module, every function parsed.
        defined: Names of the functions with a body.
        call: Runs a function of the module, or a foreign one, by name.
        foreign: Python functions that stand for functions the module only declares.
        team: The threads that parallel regions run on.
    """

    module: Module
    layout: Layout
    memory: Memory
    codecs: Codecs
    symbols: Symbols
    defined: frozenset[str]
    call: Callable[[str, list[Value]], Value]
    foreign: dict[str, Callable[..., Value]]
    team: Team


class Scope:
    """Slots of a function's values."""

    def __init__(self, context: Context, function: Function) -> None:
        self.context = context
        self.function = function
        self.template: Frame = [None, None]
        self._slots: dict[str, int] = {}
        self._constants: dict[Operand, int] = {}
        self.arguments = [self._new(a.name) for a in function.arguments]
        for instruction in function.instructions():
            if instruction.result is not None:
                self._new(instruction.result)

    def _new(self, name: str) -> int:
        self.template.append(None)
        self._slots[name] = len(self.template) - 1
        return self._slots[name]

    def slot(self, operand: Operand) -> int:
        """Slot of an operand; a constant gets one with its value in it.

        Raises:
            EvaluationError: The operand is a local that nothing defines.
        """
        if isinstance(operand, Local):
            if operand.name not in self._slots:
                raise EvaluationError(f"%{operand.name} is not defined in @{self.function.name}")
            return self._slots[operand.name]
        if operand not in self._constants:
            self.template.append(self.context.symbols.constants.value(operand))
            self._constants[operand] = len(self.template) - 1
        return self._constants[operand]

    def slots(self, instruction: Instruction) -> list[int]:
        """Slots of all operands."""
        return [self.slot(o) for o in instruction.operands]

    def result(self, instruction: Instruction) -> int:
        """Slot of an instruction's result; one that nothing reads if it has no result."""
        if instruction.result is None:
            self.template.append(None)
            return len(self.template) - 1
        return self._slots[instruction.result]

    @cached_property
    def tensors(self) -> FunctionTensors:
        """The function's tensor calls, typed.

        Raises:
            VerifyError: They break a rule.
        """
        return analyse(self.context.module, self.function)
