"""Batch strides: how far each iteration of the loop around a kernel advances the kernel's pointers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

from tlx.ir.analysis.loops import FunctionLoops, Loop
from tlx.ir.instructions import Block, Instruction
from tlx.ir.module import Module
from tlx.ir.transform.rewrite import definitions
from tlx.ir.types import bytes_of
from tlx.ir.values import ConstInt, Local, Value
from tlx.lower.context import CALL_COUNTER_ATTRIBUTE
from tlx.lower.to_tiles.problem.problems import BatchStrides, Elementwise, Gemm
from tlx.lower.to_tiles.problem.views import MatrixView

P = TypeVar("P")


@dataclass(eq=False)
class BatchLoops:
    """The loops of a function whose iterations are independent, or the loop around its calls (`tlx-rounds`).

    Attributes:
        module: The module.
        loops: The function's loops.
        made: The instruction that makes each value, by the value's name.
    """

    module: Module
    loops: FunctionLoops
    made: Mapping[str, Instruction] = field(init=False)

    def __post_init__(self) -> None:
        function = self.loops.function
        self.counter = self.module.function_attributes(function.signature).get(CALL_COUNTER_ATTRIBUTE)
        self.made = definitions(function) if self.loops.independent or self.counter else {}

    def with_batch(self, problem: P, block: Block, pointers: Sequence[tuple[Value, MatrixView]]) -> P:
        """The problem with how its pointers advance in the loop around it: a product or a map; others are unchanged."""
        if isinstance(problem, Elementwise):
            return replace(problem, streamed_bytes=self._streamed_bytes(block, [pointer for pointer, _ in pointers]))
        return replace(problem, batch=self.batch(block, pointers)) if isinstance(problem, Gemm) else problem

    def _streamed_bytes(self, block: Block, pointers: Sequence[Value]) -> int:
        """Bytes that pointers cover in all iterations of the loops around a block; equal strides count once."""
        around = self.loops.around(block)
        if not around:
            return 0
        steps = {abs(self._step(pointer, _index(around[-1])) or 0) for pointer in pointers}
        return sum(steps) * prod(loop.trips for loop in around)

    def batch(self, block: Block, pointers: Sequence[tuple[Value, MatrixView]]) -> BatchStrides | None:
        """How the pointers of a kernel called in a block advance per iteration; None outside loops."""
        around = self.loops.around(block)
        sizes = tuple(0 if view.has_gaps else view.bytes_moved for _, view in pointers)
        if not around:
            steps = tuple(self._step(pointer, self.counter) or 0 for pointer, _ in pointers) if self.counter else ()
            return BatchStrides((0, *steps[1:]), sizes, None) if any(steps[1:]) else None
        steps = tuple(self._step(pointer, _index(around[-1])) or 0 for pointer, _ in pointers)
        total = sum(view.bytes_moved for (_, view), step in zip(pointers, steps, strict=True) if step)
        return BatchStrides(steps, sizes, total * prod(loop.trips for loop in around))

    def _step(self, value: Value, index: str) -> int | None:
        """How much a value grows per iteration, pointers in bytes; None where that is unknown."""
        if isinstance(value, Local) and value.name == index:
            return 1
        made = self.made.get(value.name) if isinstance(value, Local) else None
        if made is None:
            return 0
        if made.opcode == "bitcast":
            return self._step(made.operands[0], index)
        if made.opcode not in ("add", "sub", "mul", "getelementptr") or len(made.operands) != 2:
            return None if self._depends(made, index) else 0
        first, second = (self._step(operand, index) for operand in made.operands)
        if first is None or second is None:
            return None
        if made.opcode == "getelementptr":
            return first + second * bytes_of(made.source_type) if made.source_type is not None else None
        if made.opcode != "mul":
            return first - second if made.opcode == "sub" else first + second
        by = made.operands[1]
        return first * by.value if isinstance(by, ConstInt) else None if first or second else 0

    def _depends(self, made: Instruction, index: str) -> bool:
        """Whether the result of any other instruction may depend on the index; phis, loads and calls always may."""
        if made.opcode in ("phi", "load", "call"):
            return True
        return any(self._step(operand, index) != 0 for operand in made.operands)


def _index(loop: Loop) -> str:
    return str(loop.index.result) if loop.index is not None else ""
