"""Functions that are written for one thread of a grid become kernels: see `tlx.target.thread_calls`."""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.builder import Builder
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import replace_uses
from tlx.ir.types import PointerType
from tlx.ir.values import ConstInt, Value
from tlx.lower.context import STAGE_ATTRIBUTE
from tlx.lower.to_blocks.kernel import GridFacts
from tlx.target.grid_unit import GridUnit
from tlx.target.launches import FunctionLaunches, Launch, LaunchArgument
from tlx.target.thread_calls import BLOCK_ATTRIBUTE, COUNTS, PREFIX

_MOST_THREADS: Final = 1024


def is_for_threads(module: Module, function: Function) -> bool:
    """Whether a function is written for one thread of a grid."""
    return BLOCK_ATTRIBUTE in module.function_attributes(function.signature)


def thread_function_kernel(module: Module, function: Function, grid: GridUnit) -> tuple[GridFacts, FunctionLaunches]:
    """Turn a function into a kernel, in place.

    Raises:
        LoweringError: A block has too many threads or too much shared memory.
    """
    words = module.function_attributes(function.signature)[BLOCK_ATTRIBUTE].split(",")
    threads, shared = (int(word) for word in words)
    if threads > _MOST_THREADS:
        message = f"@{function.name}: a block of {threads} threads; a work-group has at most {_MOST_THREADS} work-items"
        raise LoweringError(message, function.span)
    if shared > grid.shared_bytes:
        message = f"@{function.name}: {shared} bytes of local memory and matrices; a block has {grid.shared_bytes}"
        raise LoweringError(f"{message}: use smaller work-groups, tiles or types", function.span)
    for block in function.blocks:
        for call in [i for i in block.instructions if (i.callee or "").startswith(PREFIX)]:
            b = Builder(module, function, block, block.instructions.index(call))
            value = _operation(b, grid, call)
            if value is not None and call.result is not None:
                replace_uses(function, call.result, value)
            block.instructions.remove(call)
    function.header = function.header.replace("define void", f"define {grid.linkage} void", 1)
    function.signature.result_attributes = grid.linkage
    function.replace_attributes(f'nounwind "{STAGE_ATTRIBUTE}"="tiles"')
    arguments = function.arguments
    passed = tuple(
        LaunchArgument(parameter=number, offset=0 if isinstance(argument.type, PointerType) else None)
        for number, argument in enumerate(arguments)
    )
    types = tuple("ptr" if isinstance(a.type, PointerType) else str(a.type) for a in arguments)
    counts = tuple(range(len(arguments) - COUNTS, len(arguments)))
    launch = Launch(function.name, counts, threads, shared, passed)
    return GridFacts(function.name, 0, threads, shared), FunctionLaunches(function.name, types, (), (launch,))


def _operation(b: Builder, grid: GridUnit, call: Instruction) -> Value | None:
    """The operation of the grid that a call is."""
    operations, arguments = grid.operations, call.args
    match (call.callee or "").removeprefix(PREFIX):
        case "number":
            return operations.thread(b)
        case "block":
            return operations.block(b)
        case "shared":
            return operations.shared(b)
        case "barrier":
            operations.barrier(b)
        case "meet":
            operations.meet(b, _size(arguments[0]))
        case "shuffle":
            return operations.shuffle(b, arguments[0], arguments[1], _size(arguments[2]))
        case "ballot":
            return operations.ballot(b, arguments[0], _size(arguments[1]))
        case name:
            raise LoweringError(f"there is no operation {PREFIX}{name} of threads", call.span)
    return None


def _size(value: Value) -> int:
    assert isinstance(value, ConstInt)
    return value.value
