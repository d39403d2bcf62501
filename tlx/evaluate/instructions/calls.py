"""Steps of calls: functions of the module, intrinsics, library functions, foreign functions, inline assembly.

Inline assembly is evaluated if it has no instructions (its result is its operand), or one that a target explains, such
as those that identify the processor.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tlx.diagnostics import EvaluationError
from tlx.evaluate.arguments import byval_copies, pass_byval_copies
from tlx.evaluate.context import STACK_SLOT, CallSite, Frame, FunctionScope, Implementation, Step
from tlx.evaluate.instructions.tensors import tensor_step
from tlx.evaluate.intrinsics.table import find_implementation
from tlx.evaluate.target_semantics import target_semantics
from tlx.intrinsics import is_tensor_name
from tlx.ir.instructions import Instruction
from tlx.ir.types import VOID, StructType
from tlx.ir.values import Global, Text

_IGNORED: Final = (
    "llvm.dbg.",
    "llvm.experimental.noalias.scope.decl",
    "llvm.donothing",
    "llvm.var.annotation",
    "llvm.sideeffect",
)


def call(scope: FunctionScope, instruction: Instruction) -> Step | None:
    """`call` and the call of an `invoke`; None where there is nothing to do."""
    callee = instruction.operands[0]
    if isinstance(callee, Text):
        return inline_assembly(scope, instruction, callee)
    if not isinstance(callee, Global):
        return _indirect(scope, instruction)
    name = callee.name.strip('"')
    if is_tensor_name(name):
        return tensor_step(scope, instruction)
    if name.startswith(_IGNORED):
        return None
    if name.startswith("llvm.stack"):
        return _stack(scope, instruction, name)
    context = scope.context
    site = CallSite(context, name, instruction.type, tuple(a.type for a in instruction.args))
    if callee.name in context.defined or name in context.foreign:
        return _direct(scope, instruction, callee.name)
    factory = find_implementation(name)
    if factory is not None:
        return _run(scope, instruction, factory(site))
    return _direct(scope, instruction, callee.name)


def _run(scope: FunctionScope, instruction: Instruction, function: Implementation) -> Step:
    out = scope.result(instruction)
    slots = [scope.slot(a) for a in instruction.args if str(a.type) != "metadata"]
    if len(slots) == 1:
        (a,) = slots

        def unary(frame: Frame) -> None:
            frame[out] = function(frame[a])

        return unary

    def step(frame: Frame) -> None:
        frame[out] = function(*[frame[s] for s in slots])

    return step


def _direct(scope: FunctionScope, instruction: Instruction, name: str) -> Step:
    out = scope.result(instruction)
    slots = [scope.slot(a) for a in instruction.args]
    invoke = scope.context.call
    memory = scope.context.memory
    given = zip([a.type for a in instruction.args], instruction.arg_attributes, strict=True)
    made = () if name in scope.context.defined else byval_copies(scope.context.layout, name, given)

    def step(frame: Frame) -> None:
        frame[out] = invoke(name, [frame[s] for s in slots])

    def copying(frame: Frame) -> None:
        frame[out] = invoke(name, pass_byval_copies(memory, frame[STACK_SLOT], made, [frame[s] for s in slots]))

    return copying if made else step


def _indirect(scope: FunctionScope, instruction: Instruction) -> Step:
    out = scope.result(instruction)
    pointer = scope.slot(instruction.operands[0])
    slots = [scope.slot(a) for a in instruction.args]
    context = scope.context

    def step(frame: Frame) -> None:
        name = context.symbols.function_at(frame[pointer])
        frame[out] = context.call(name, [frame[s] for s in slots])

    return step


def _stack(scope: FunctionScope, instruction: Instruction, name: str) -> Step:
    """`llvm.stacksave` gives the number of stack regions, `llvm.stackrestore` drops those made since."""
    out = scope.result(instruction)
    if name.startswith("llvm.stacksave"):

        def save(frame: Frame) -> None:
            frame[out] = len(frame[STACK_SLOT])

        return save
    (saved,) = [scope.slot(a) for a in instruction.args]
    memory = scope.context.memory

    def restore(frame: Frame) -> None:
        stack = frame[STACK_SLOT]
        while len(stack) > frame[saved]:
            memory.release(stack.pop(), "went out of scope at llvm.stackrestore")

    return restore


_EMPTY: Final = re.compile(r'asm (sideeffect )?"",')
_TIED: Final = re.compile(r'"=\w+,0(,~\{[^"]*)?"')
"""One result, in the register of the only operand."""
_INSTRUCTION: Final = re.compile(r'asm (?:\w+ )*"([^"]*)"')


def _empty_assembly(scope: FunctionScope, instruction: Instruction, callee: str) -> Step:
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


def inline_assembly(scope: FunctionScope, instruction: Instruction, callee: Text) -> Step:
    """A call of assembly.

    Raises:
        EvaluationError: No target says what its instructions do.
    """
    if _EMPTY.search(str(callee)):
        return _empty_assembly(scope, instruction, str(callee))
    found = _INSTRUCTION.search(str(callee))
    name = found[1] if found else ""
    run = scope.context.assembly.get(name) or target_semantics().assembly.get(name)
    if run is None:
        raise EvaluationError("the evaluator does not run inline assembly")
    out, type_ = scope.result(instruction), instruction.type
    slots = [scope.slot(a) for a in instruction.args]

    def step(frame: Frame) -> None:
        registers: list[Any] = list(run([frame[s] for s in slots]))
        frame[out] = registers[: len(type_.elements)] if isinstance(type_, StructType) else registers[0]

    return step
