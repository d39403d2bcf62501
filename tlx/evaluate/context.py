"""The context of compiled steps: the machine's state, slots of values, calls, threads, instructions of targets.

The frame of a running function is a list of slots: the result, the stack regions, then arguments, results of
instructions and constants. A step is a closure over slot numbers that works on a frame.

An architecture's folder in `tlx.legalize` has a module `semantics` with a `SEMANTICS`: the meaning of its intrinsics,
register types and inline assembly. Other packages name theirs under the entry point group `tlx.semantics`. They are
imported when a program first needs one of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final, TypeAlias

from tlx.diagnostics import EvaluationError
from tlx.evaluate.globals import SymbolTable
from tlx.evaluate.memory import AddressSpace, Layout
from tlx.evaluate.teams import ThreadTeam
from tlx.evaluate.values import Codecs, RuntimeValue
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.tensors.inference import analyse
from tlx.ir.tensors.model import FunctionTensors
from tlx.ir.types import Type
from tlx.ir.values import Local
from tlx.ir.values import Value as Operand
from tlx.target.discovery import SEMANTICS_GROUP, load_entry_point, provided_entry_points, semantics_modules

Frame: TypeAlias = list[Any]
Step: TypeAlias = Callable[[Frame], None]
RESULT_SLOT: Final = 0
STACK_SLOT: Final = 1


@dataclass(eq=False)
class MachineContext:
    """The state of a machine that steps work with.

    Attributes:
        module: The module, every function parsed.
        defined: The functions with a body, by name.
        call: Runs a function of the module, or a foreign one, by name.
        foreign: Python implementations of functions that the module only declares.
        team: The threads that parallel regions run on.
        assembly: Inline assembly by instruction, overriding the target's.
        thread_values: For each key of `pthread_key_create`, the values of the threads by their numbers.
    """

    module: Module
    layout: Layout
    memory: AddressSpace
    codecs: Codecs
    symbols: SymbolTable
    defined: Mapping[str, Function]
    call: Callable[[str, list[RuntimeValue]], RuntimeValue]
    foreign: dict[str, Callable[..., RuntimeValue]]
    team: ThreadTeam
    assembly: Mapping[str, Callable[[Sequence[int]], Sequence[int]]]
    thread_values: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])


class FunctionScope:
    """Slots of a function's values."""

    def __init__(self, context: MachineContext, function: Function) -> None:
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


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call to an intrinsic.

    Attributes:
        context: The machine's state.
        name: The callee, without `@`.
        result: Type of the result.
        arguments: Types of the arguments.
        metadata: The arguments that are metadata, as spelled.
    """

    context: MachineContext
    name: str
    result: Type
    arguments: tuple[Type, ...]
    metadata: tuple[str, ...] = ()


Implementation: TypeAlias = Callable[..., Any]
ImplementationFactory: TypeAlias = Callable[[CallSite], Implementation]
FunctionTable: TypeAlias = dict[str, ImplementationFactory]
PythonFunction: TypeAlias = (
    Callable[[Any], Any]
    | Callable[[Any, Any], Any]
    | Callable[[Any, Any, Any], Any]
    | Callable[[Any, Any, Any, Any], Any]
)


def typed(function: PythonFunction) -> Implementation:
    """The function itself; the parameter's type gives the parameters of a lambda theirs."""
    return function


def type_independent(function: Implementation) -> ImplementationFactory:
    """A table entry for a function that does not depend on the call's types."""
    return lambda _site: function


def first_argument(value: Any, *_others: Any) -> Any:
    """The first argument, for intrinsics that only inform the optimiser."""
    return value


def no_operation(*_args: Any) -> None:
    """The implementation of intrinsics that do nothing here."""


AssemblyTable: TypeAlias = Mapping[str, Callable[[Sequence[int]], Sequence[int]]]
"""By instruction: a function from the inputs of its inline assembly to its output registers."""


@dataclass(frozen=True, slots=True)
class TargetSemantics:
    """The meaning of one architecture's instructions in numpy.

    Attributes:
        intrinsics: Implementations by name, without `llvm.` and the suffix of an overload.
        registers: Register types that are opaque to all other instructions, by LLVM's name: the shape of the array of
            bytes that represents a value.
        assembly: Inline assembly by instruction.
    """

    intrinsics: FunctionTable = field(default_factory=FunctionTable)
    registers: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    assembly: AssemblyTable = field(default_factory=dict[str, Callable[[Sequence[int]], Sequence[int]]])


@cache
def target_semantics() -> TargetSemantics:
    """The instructions of all architectures; their names begin with the architecture, so none clash."""
    loaded: list[TargetSemantics] = [importlib.import_module(name).SEMANTICS for name in semantics_modules()]
    loaded += [load_entry_point(entry, "semantics") for entry in provided_entry_points(SEMANTICS_GROUP)]
    return TargetSemantics(
        {name: function for semantics in loaded for name, function in semantics.intrinsics.items()},
        {name: shape for semantics in loaded for name, shape in semantics.registers.items()},
        {name: function for semantics in loaded for name, function in semantics.assembly.items()},
    )


def register_shapes() -> Mapping[str, tuple[int, ...]]:
    """The register types of all architectures."""
    return target_semantics().registers
