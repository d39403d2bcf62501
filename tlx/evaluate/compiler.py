"""Compiling a function to closures: a step for each instruction, blocks, and the edges between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tlx.diagnostics import EvaluationError
from tlx.evaluate.arguments import ByvalCopy, byval_copies
from tlx.evaluate.context import RESULT_SLOT, Frame, FunctionScope, MachineContext, Step
from tlx.evaluate.instructions import arithmetic, elements, memory
from tlx.evaluate.instructions.calls import call
from tlx.evaluate.instructions.tensors import elementwise_on_handles
from tlx.ir.functions import Function
from tlx.ir.instructions import BINARY_OPCODES, CAST_OPCODES, Block, Instruction
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

    def __init__(
        self, scope: FunctionScope, codes: dict[str, BlockCode], blocks: dict[str, Block], block: Block
    ) -> None:
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


def _return(scope: FunctionScope, instruction: Instruction) -> Exit:
    if not instruction.operands:
        return lambda _frame: None
    value = scope.slot(instruction.operands[0])

    def leave(frame: Frame) -> None:
        frame[RESULT_SLOT] = frame[value]

    return leave


def _unreachable(_frame: Frame) -> Edge | None:
    raise EvaluationError("reached 'unreachable'")


StepMaker = Callable[[FunctionScope, Instruction], Step | None]


@dataclass(eq=False, slots=True)
class FunctionCode:
    """A compiled function.

    Attributes:
        template: The frame of a fresh call, constants in place.
        arguments: Slots of the parameters.
        copies: The arguments that the function gets copies of.
    """

    function: Function
    entry: BlockCode
    template: Frame
    arguments: list[int]
    copies: tuple[ByvalCopy, ...]


def compile_function(context: MachineContext, function: Function) -> FunctionCode:
    """Compile a function.

    Raises:
        EvaluationError: It has something the evaluator does not run; the error has the instruction's place.
    """
    scope = FunctionScope(context, function)
    blocks = {b.name: b for b in function.blocks}
    codes = {name: BlockCode(name) for name in blocks}
    for block in function.blocks:
        _compile_block(scope, block, codes, blocks)
    made = byval_copies(context.layout, function.name, [(a.type, a.attributes) for a in function.arguments])
    return FunctionCode(function, codes[function.entry.name], scope.template, scope.arguments, made)


def _compile_block(scope: FunctionScope, block: Block, codes: dict[str, BlockCode], blocks: dict[str, Block]) -> None:
    code = codes[block.name]
    for instruction in block.instructions:
        if instruction.opcode in ("phi", "#dbg"):
            continue
        try:
            if not instruction.is_terminator or instruction.opcode == "invoke":
                step = elementwise_on_handles(_step_maker(instruction))(scope, instruction)
                if step is not None:
                    code.steps.append(step)
                    code.instructions.append(instruction)
            if instruction.is_terminator:
                code.exit = terminator(Edges(scope, codes, blocks, block), instruction)
                code.terminator = instruction
        except EvaluationError as error:
            error.span = error.span or instruction.span
            raise


def _step_maker(instruction: Instruction) -> StepMaker:
    maker = _STEP_MAKERS.get(instruction.opcode)
    if maker is None:
        raise EvaluationError(f"the evaluator does not run '{instruction.opcode}'")
    return maker


def _no_step(_scope: FunctionScope, _instruction: Instruction) -> None:
    """`fence`, with one thread; `landingpad`, as no exception is ever thrown."""


_STEP_MAKERS: Final[dict[str, StepMaker]] = {
    **dict.fromkeys(BINARY_OPCODES, arithmetic.binary),
    **dict.fromkeys(CAST_OPCODES, arithmetic.cast),
    "fneg": arithmetic.fneg,
    "freeze": arithmetic.freeze,
    "icmp": arithmetic.compare,
    "fcmp": arithmetic.compare,
    "select": arithmetic.select,
    "extractelement": elements.extract_element,
    "insertelement": elements.insert_element,
    "shufflevector": elements.shuffle,
    "extractvalue": elements.extract_value,
    "insertvalue": elements.insert_value,
    "alloca": memory.alloca,
    "getelementptr": memory.gep,
    "load": memory.load,
    "store": memory.store,
    "atomicrmw": memory.atomic_update,
    "cmpxchg": memory.compare_exchange,
    "call": call,
    "invoke": call,
    "fence": _no_step,
    "landingpad": _no_step,
}
