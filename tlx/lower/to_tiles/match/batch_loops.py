"""Batch strides: how far each iteration of a loop advances the pointers of the kernel that it calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

from tlx.ir.control_flow import FunctionLoops, Loop
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.rewrite import definitions
from tlx.ir.types import bytes_of
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.context import CALL_COUNTER_ATTRIBUTE
from tlx.lower.to_tiles.expression import MatrixView
from tlx.lower.to_tiles.problem import BatchStrides, Elementwise, Gemm

P = TypeVar("P")


@dataclass(eq=False)
class BatchLoops:
    """The independent loops of a function, or the loop around its calls (attribute `tlx-rounds`).

    Attributes:
        module: The module.
        loops: The function's loops.
        definitions: The instruction that defines each value, by the value's name.
    """

    module: Module
    loops: FunctionLoops
    definitions: Mapping[str, Instruction] = field(init=False)

    def __post_init__(self) -> None:
        function = self.loops.function
        self.counter = self.module.function_attributes(function.signature).get(CALL_COUNTER_ATTRIBUTE)
        self.definitions = definitions(function) if self.loops.independent or self.counter else {}

    def with_batch(self, problem: P, block: Block, pointers: Sequence[tuple[Value, MatrixView]]) -> P:
        """The problem, with its batch strides if it is a product or a map in a loop."""
        if isinstance(problem, Elementwise):
            return replace(problem, streamed_bytes=self._streamed_bytes(block, [pointer for pointer, _ in pointers]))
        return replace(problem, batch=self.batch(block, pointers)) if isinstance(problem, Gemm) else problem

    def _streamed_bytes(self, block: Block, pointers: Sequence[Value]) -> int:
        """Bytes that pointers cover in all iterations of the loops around a block; equal strides count once."""
        enclosing = self.loops.enclosing_independent_loops(block)
        if not enclosing:
            return 0
        steps = {abs(self._step(pointer, _index(enclosing[-1])) or 0) for pointer in pointers}
        return sum(steps) * prod(loop.trips for loop in enclosing)

    def batch(self, block: Block, pointers: Sequence[tuple[Value, MatrixView]]) -> BatchStrides | None:
        """How the pointers of a kernel called in a block advance per iteration; None outside loops."""
        enclosing = self.loops.enclosing_independent_loops(block)
        sizes = tuple(0 if view.has_gaps else view.bytes_moved for _, view in pointers)
        if not enclosing:
            steps = tuple(self._step(pointer, self.counter) or 0 for pointer, _ in pointers) if self.counter else ()
            return BatchStrides((0, *steps[1:]), sizes, None) if any(steps[1:]) else None
        steps = tuple(self._step(pointer, _index(enclosing[-1])) or 0 for pointer, _ in pointers)
        total = sum(view.bytes_moved for (_, view), step in zip(pointers, steps, strict=True) if step)
        return BatchStrides(steps, sizes, total * prod(loop.trips for loop in enclosing))

    def _step(self, value: Value, index_name: str) -> int | None:
        """How much a value grows per iteration, pointers in bytes; None where that is unknown."""
        if isinstance(value, Local) and value.name == index_name:
            return 1
        definition = self.definitions.get(value.name) if isinstance(value, Local) else None
        if definition is None:
            return 0
        if definition.opcode == "bitcast":
            return self._step(definition.operands[0], index_name)
        if definition.opcode not in ("add", "sub", "mul", "getelementptr") or len(definition.operands) != 2:
            return None if self._depends(definition, index_name) else 0
        first, second = (self._step(operand, index_name) for operand in definition.operands)
        if first is None or second is None:
            return None
        if definition.opcode == "getelementptr":
            return first + second * bytes_of(definition.source_type) if definition.source_type is not None else None
        if definition.opcode != "mul":
            return first - second if definition.opcode == "sub" else first + second
        factor = definition.operands[1]
        if isinstance(factor, ConstInt):
            return first * factor.value
        return None if first or second else 0

    def _depends(self, definition: Instruction, index_name: str) -> bool:
        """Whether an instruction's result may depend on the index; that of a phi, load or call always may."""
        if definition.opcode in ("phi", "load", "call"):
            return True
        return any(self._step(operand, index_name) != 0 for operand in definition.operands)


def _index(loop: Loop) -> str:
    return str(loop.index.result) if loop.index is not None else ""
