"""Calls of kernels that end a function: it jumps to the kernel, which returns to the function's caller.

call void @tlx.matmul.8x8x8.f32.f32.f32(...)          tail call void @tlx.matmul.8x8x8.f32.f32.f32(...)
ret void                                        ->    ret void

LLVM's optimiser would find out; code that it does not see saves the second return and the stack that it takes.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from tlx.ir.abi import attributes
from tlx.ir.module import Block, Function, Module

_ON_STACK: Final = frozenset({"byval", "inalloca", "preallocated"})


def mark_tail_calls(module: Module, kernels: Container[str]) -> None:
    """Mark the calls of kernels that end functions without memory of their own, which no kernel can be given then."""
    for function in module.functions:
        if not _has_memory(function):
            for block in function.blocks:
                _mark(block, kernels)


def _has_memory(function: Function) -> bool:
    """Whether a function has memory on the stack, be it that of its arguments, which a tail call may overwrite."""
    given = {attribute.name for argument in function.arguments for attribute in attributes(argument.attributes)}
    return not given.isdisjoint(_ON_STACK) or any(
        instruction.opcode == "alloca" for instruction in function.instructions()
    )


def _mark(block: Block, kernels: Container[str]) -> None:
    if len(block.instructions) < 2 or not block.terminator.text.startswith("ret void"):
        return
    call = block.instructions[-2]
    if call.text.startswith("call ") and (call.callee or "") in kernels:
        call.text, call.flags = f"tail {call.text}", ("tail", *call.flags)
