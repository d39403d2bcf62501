"""Steps of calls: functions of the module, intrinsics, library functions, functions given to the machine."""

from __future__ import annotations

from typing import Final

from tlx.evaluate.assembly import assembly
from tlx.evaluate.by_value import copies, with_copies
from tlx.evaluate.intrinsics import find
from tlx.evaluate.scope import STACK, Frame, Scope, Step
from tlx.evaluate.site import CallSite, Run
from tlx.evaluate.tensor_steps import tensor_step
from tlx.intrinsics import is_tensor_name
from tlx.ir.module import Instruction
from tlx.ir.values import Global, Text

_IGNORED: Final = (
    "llvm.dbg.",
    "llvm.experimental.noalias.scope.decl",
    "llvm.donothing",
    "llvm.var.annotation",
    "llvm.sideeffect",
)


def call(scope: Scope, instruction: Instruction) -> Step | None:
    """`call` and the call of an `invoke`; None where there is nothing to do."""
    callee = instruction.operands[0]
    if isinstance(callee, Text):
        return assembly(scope, instruction, callee)
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
    factory = find(name)
    if factory is not None:
        return _run(scope, instruction, factory(site))
    return _direct(scope, instruction, callee.name)


def _run(scope: Scope, instruction: Instruction, function: Run) -> Step:
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


def _direct(scope: Scope, instruction: Instruction, name: str) -> Step:
    out = scope.result(instruction)
    slots = [scope.slot(a) for a in instruction.args]
    invoke = scope.context.call
    memory = scope.context.memory
    given = zip([a.type for a in instruction.args], instruction.arg_attributes, strict=True)
    made = () if name in scope.context.defined else copies(scope.context.layout, name, given)

    def step(frame: Frame) -> None:
        frame[out] = invoke(name, [frame[s] for s in slots])

    def copying(frame: Frame) -> None:
        frame[out] = invoke(name, with_copies(memory, frame[STACK], made, [frame[s] for s in slots]))

    return copying if made else step


def _indirect(scope: Scope, instruction: Instruction) -> Step:
    out = scope.result(instruction)
    pointer = scope.slot(instruction.operands[0])
    slots = [scope.slot(a) for a in instruction.args]
    context = scope.context

    def step(frame: Frame) -> None:
        name = context.symbols.function_at(frame[pointer])
        frame[out] = context.call(name, [frame[s] for s in slots])

    return step


def _stack(scope: Scope, instruction: Instruction, name: str) -> Step:
    """`llvm.stacksave` gives the number of stack regions, `llvm.stackrestore` drops those made since."""
    out = scope.result(instruction)
    if name.startswith("llvm.stacksave"):

        def save(frame: Frame) -> None:
            frame[out] = len(frame[STACK])

        return save
    (saved,) = [scope.slot(a) for a in instruction.args]
    memory = scope.context.memory

    def restore(frame: Frame) -> None:
        stack = frame[STACK]
        while len(stack) > frame[saved]:
            memory.release(stack.pop(), "went out of scope at llvm.stackrestore")

    return restore
