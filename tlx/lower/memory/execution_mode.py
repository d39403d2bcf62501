"""Kernels that run in a special mode of the machine, such as streaming mode: memory is allocated outside it.

A function that has a mode by its attributes leaves the mode around each call to another function, and saves the state
of the mode for it.

Rewrite (`enter_mode`):
    define internal void @kernel(ptr %c) {        define internal void @kernel(ptr %c) {
      %x = call ptr @malloc(i64 4096)               %x = call ptr @malloc(i64 4096)
      ... tiles ...                                 call void @kernel.mode(ptr %c, ptr %x)
      call void @free(ptr %x)                       call void @free(ptr %x)
      ret void                                      ret void
    }                                       ->    }
                                                  define internal void @kernel.mode(ptr %c, ptr %x) MODE {
                                                    ... tiles ...
                                                    ret void
                                                  }
"""

from __future__ import annotations

from tlx.ir.builder import Builder, new_function
from tlx.ir.functions import Function, NameScope
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.types import VOID, FunctionType
from tlx.ir.values import Global, Local, Value
from tlx.lower.memory.allocation import ALLOCATORS


def enter_mode(module: Module, kernel: Function, attributes: str, mode: str) -> None:
    """Give a kernel its attributes and those of a mode; a kernel that allocates memory gets a function for the mode.

    Args:
        module: The module.
        kernel: The kernel.
        attributes: Its attributes, as text.
        mode: The attributes of the mode, as text.
    """
    known = {argument.name for argument in kernel.arguments}
    calls = [i for i in kernel.instructions() if i.callee in ALLOCATORS]
    allocations = [call for call in calls if call.result is not None and _is_computable(call, known)]
    known |= {call.value.name for call in allocations}
    releases = [call for call in calls if call.result is None and _is_computable(call, known)]
    if not allocations:
        kernel.replace_attributes(f"{mode} {attributes}")
        return
    kernel.replace_attributes(attributes)
    parameters = [(argument.type, argument.attributes, argument.name) for argument in kernel.arguments]
    parameters += [(call.value.type, "", call.value.name) for call in allocations]
    name = module.global_names.fresh(f"{kernel.name}.mode")
    inner = new_function(module, name, parameters, f"{mode} {attributes}")
    inner.blocks, inner.names = kernel.blocks, kernel.names
    for block in inner.blocks:
        block.instructions = [i for i in block.instructions if i not in allocations and i not in releases]
    kernel.blocks = [Block("entry", "\nentry:")]
    kernel.names = NameScope({name for _, _, name in parameters} | {"entry"})
    kernel.facts.clear()
    _call(module, kernel, inner, allocations, releases)


def _is_computable(call: Instruction, known: set[str]) -> bool:
    """Whether a call's operands are constants or among some values."""
    return all(not isinstance(operand, Local) or operand.name in known for operand in call.operands)


def _call(
    module: Module, kernel: Function, inner: Function, allocations: list[Instruction], releases: list[Instruction]
) -> None:
    """Emit the kernel: allocate, call the function in the mode, release."""
    kernel.entry.instructions = list(allocations)
    b = Builder(module, kernel, kernel.entry)
    type_ = FunctionType(VOID, tuple(argument.type for argument in inner.arguments))
    arguments: list[Value] = [argument.value for argument in inner.arguments]
    b.call(Global(module.pointer_to(type_), inner.name), type_, arguments)
    released = {str(call.operands[0]): call for call in releases}
    kernel.entry.instructions += released.values()
    b.at_end(kernel.entry)
    b.ret()
