"""Blocks, edges between them, and terminators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tlx.diagnostics import EvaluationError
from tlx.evaluate.scope import RESULT, Frame, Scope, Step
from tlx.ir.module import Block, Instruction
from tlx.ir.types import LABEL
from tlx.ir.values import Value as Operand


@dataclass(eq=False, slots=True)
class BlockCode:
    """A compiled block: its steps with the instruction of each, and the function that finds the next block."""

    name: str
    steps: list[Step] = field(default_factory=list[Step])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    exit: Exit | None = None
    terminator: Instruction | None = None


@dataclass(eq=False, slots=True)
class Edge:
    """A way from one block to another: phis read all `sources` before any of `results` is written."""

    target: BlockCode
    sources: list[int]
    results: list[int]


Exit: TypeAlias = Callable[[Frame], Edge | None]


class Edges:
    """Makes the edges that leave one block."""

    def __init__(self, scope: Scope, codes: dict[str, BlockCode], blocks: dict[str, Block], block: Block) -> None:
        self.scope = scope
        self._codes = codes
        self._blocks = blocks
        self._from = block.name

    def __getitem__(self, target: str) -> Edge:
        if target not in self._blocks:
            raise EvaluationError(f"branch to %{target}, which is no block of @{self.scope.function.name}")
        phis = self._blocks[target].phis
        sources = [self.scope.slot(self._incoming(phi)) for phi in phis]
        return Edge(self._codes[target], sources, [self.scope.result(phi) for phi in phis])

    def _incoming(self, phi: Instruction) -> Operand:
        for value, block in phi.incoming:
            if block == self._from:
                return value
        raise EvaluationError(f"phi has no value for the way from %{self._from}", phi.span)


def terminator(edges: Edges, instruction: Instruction) -> Exit:
    """The exit of a block that ends with `instruction`.

    Raises:
        EvaluationError: The evaluator does not run this terminator.
    """
    match instruction.opcode:
        case "br" if len(instruction.operands) == 1:
            edge = edges[instruction.targets[0]]
            return lambda _frame: edge
        case "br":
            return _conditional(edges, instruction)
        case "switch":
            return _switch(edges, instruction)
        case "ret":
            return _return(edges.scope, instruction)
        case "invoke":
            edge = edges[instruction.targets[0]]
            return lambda _frame: edge
        case "unreachable":
            return _unreachable
        case _:
            raise EvaluationError(f"the evaluator does not run '{instruction.opcode}'", instruction.span)


def _conditional(edges: Edges, instruction: Instruction) -> Exit:
    condition = edges.scope.slot(instruction.operands[0])
    yes, no = (edges[target] for target in instruction.targets)
    return lambda frame: yes if frame[condition] else no


def _switch(edges: Edges, instruction: Instruction) -> Exit:
    scope = edges.scope
    value = scope.slot(instruction.operands[0])
    default, *targets = (edges[target] for target in instruction.targets)
    constants = [o for o in instruction.operands[2:] if o.type != LABEL]
    cases = {
        scope.context.symbols.constants.value(constant): edge for constant, edge in zip(constants, targets, strict=True)
    }
    return lambda frame: cases.get(frame[value], default)


def _return(scope: Scope, instruction: Instruction) -> Exit:
    if not instruction.operands:
        return lambda _frame: None
    value = scope.slot(instruction.operands[0])

    def leave(frame: Frame) -> None:
        frame[RESULT] = frame[value]

    return leave


def _unreachable(_frame: Frame) -> Edge | None:
    raise EvaluationError("reached 'unreachable'")
