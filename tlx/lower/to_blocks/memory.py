"""Ordinary memory operations of the host's part of a function, as trees: copies, fills, and stores of single values."""

from __future__ import annotations

from typing import Final

from tlx.diagnostics import LoweringError
from tlx.ir.functions import Function
from tlx.ir.instructions import Instruction
from tlx.ir.rewrite import definitions, uses
from tlx.ir.tensors.calls import is_tensor_call
from tlx.ir.types import I8, FloatType, IntType, PointerType, bytes_of
from tlx.ir.values import Constant, ConstInt, Local
from tlx.lower.to_tiles.expression import Expression, MatrixView, ScalarLeaf, SplatLeaf
from tlx.lower.to_tiles.match import Match
from tlx.lower.to_tiles.problem import Copy, Elementwise

_MEMORY_CALLS: Final = ("llvm.memcpy.", "llvm.memset.")


def is_memory_call(instruction: Instruction) -> bool:
    """Whether an instruction copies or fills memory."""
    return instruction.opcode == "call" and (instruction.callee or "").startswith(_MEMORY_CALLS)


def match_memory_call(call: Instruction) -> Match:
    """A call that copies or fills memory, as a tree on bytes."""
    to, source, size, *_ = call.args
    if not isinstance(size, ConstInt):
        raise refused("a copy whose size is known only at run time", call, "copy a constant number of bytes")
    view = _bytes(size.value)
    if isinstance(source.type, PointerType):
        return Match(call, Copy(view, view), [(to, view), (source, view)], [], [])
    if not isinstance(source, Constant):
        raise refused("filling memory with a number known only at run time", call, "fill it with a constant")
    value = Expression(1, size.value, (SplatLeaf(I8, source),))
    return Match(call, Elementwise(view, value), [(to, view)], [], [])


class PlainStores:
    """The ordinary stores of a function that kernels can do: of constants, parameters, and values just loaded.

    Attributes:
        loads: The loads, by their identity, whose values are only stored.
    """

    def __init__(self, function: Function) -> None:
        self._definitions, self._parameters = definitions(function), {argument.name for argument in function.arguments}
        self._matches = {
            id(i): match
            for block in function.blocks
            for number, i in enumerate(block.instructions)
            if i.opcode == "store" and (match := self._match(block.instructions, number)) is not None
        }
        used = uses(function)
        self.loads = frozenset(
            id(i)
            for i in function.instructions()
            if i.opcode == "load" and all(id(use.instruction) in self._matches for use in used.get(i.result or "", []))
        )

    def match(self, instruction: Instruction) -> Match | None:
        """The store as a tree."""
        return self._matches.get(id(instruction))

    def _match(self, block: list[Instruction], number: int) -> Match | None:
        store = block[number]
        value, pointer = store.operands
        definition = self._definitions.get(value.name) if isinstance(value, Local) else None
        if definition is not None and definition.opcode == "load":
            first = next((k for k, i in enumerate(block) if i is definition), None)
            if first is None or any(map(_may_write, block[first:number])):
                return None
            view = _bytes(bytes_of(value.type))
            source = definition.operands[0]
            return Match(store, Copy(view, view), [(pointer, view), (source, view)], [], [])
        if not isinstance(value.type, IntType | FloatType):
            return None
        view = MatrixView(value.type, 1, 1, 0, 1)
        is_parameter = isinstance(value, Local) and value.name in self._parameters
        if not is_parameter and not isinstance(value, Constant):
            return None
        leaf = ScalarLeaf(value.type, 0) if is_parameter else SplatLeaf(value.type, value)
        scalars = [value] if is_parameter else []
        return Match(store, Elementwise(view, Expression(1, 1, (leaf,))), [(pointer, view)], scalars, [])


def _may_write(instruction: Instruction) -> bool:
    is_store = instruction.opcode == "store" or is_memory_call(instruction)
    return is_store or (is_tensor_call(instruction) and ".store" in (instruction.callee or ""))


def _bytes(size: int) -> MatrixView:
    return MatrixView(I8, 1, size, 0, 1)


def refused(what: str, at: Instruction, remedy: str) -> LoweringError:
    """The error about something that only a processor can do."""
    reason = "the target runs fixed sequences of kernels on parameters and temporaries of constant sizes"
    return LoweringError(f"{what} cannot be launched as kernels: {reason}; {remedy}", at.span)
