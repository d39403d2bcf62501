"""Compiling a function to steps: a table from opcode to the function that makes its step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tlx.diagnostics import EvaluationError
from tlx.evaluate import access, arithmetic, casts, elements
from tlx.evaluate.by_value import Copy, copies
from tlx.evaluate.calls import call
from tlx.evaluate.control import BlockCode, Edges, terminator
from tlx.evaluate.dynamic_steps import elementwise
from tlx.evaluate.scope import Context, Frame, Scope, Step
from tlx.ir.module import Block, Function, Instruction
from tlx.ir.opcodes import BINARY, CASTS

StepMaker = Callable[[Scope, Instruction], Step | None]


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
    copies: tuple[Copy, ...]


def compile_function(context: Context, function: Function) -> FunctionCode:
    """Compile a function.

    Raises:
        EvaluationError: It has something the evaluator does not run; the error has the instruction's place.
    """
    scope = Scope(context, function)
    blocks = {b.name: b for b in function.blocks}
    codes = {name: BlockCode(name) for name in blocks}
    for block in function.blocks:
        _compile_block(scope, block, codes, blocks)
    made = copies(context.layout, function.name, [(a.type, a.attributes) for a in function.arguments])
    return FunctionCode(function, codes[function.entry.name], scope.template, scope.arguments, made)


def _compile_block(scope: Scope, block: Block, codes: dict[str, BlockCode], blocks: dict[str, Block]) -> None:
    code = codes[block.name]
    for instruction in block.instructions:
        if instruction.opcode in ("phi", "#dbg"):
            continue
        try:
            if not instruction.is_terminator or instruction.opcode == "invoke":
                step = elementwise(_maker(instruction))(scope, instruction)
                if step is not None:
                    code.steps.append(step)
                    code.instructions.append(instruction)
            if instruction.is_terminator:
                code.exit = terminator(Edges(scope, codes, blocks, block), instruction)
                code.terminator = instruction
        except EvaluationError as error:
            error.span = error.span or instruction.span
            raise


def _maker(instruction: Instruction) -> StepMaker:
    maker = _MAKERS.get(instruction.opcode)
    if maker is None:
        raise EvaluationError(f"the evaluator does not run '{instruction.opcode}'")
    return maker


def _nothing(_scope: Scope, _instruction: Instruction) -> None:
    """`fence`, with one thread; `landingpad`, as no exception is ever thrown."""


_MAKERS: Final[dict[str, StepMaker]] = {
    **dict.fromkeys(BINARY, arithmetic.binary),
    **dict.fromkeys(CASTS, casts.cast),
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
    "alloca": access.alloca,
    "getelementptr": access.gep,
    "load": access.load,
    "store": access.store,
    "atomicrmw": access.atomic_update,
    "cmpxchg": access.compare_exchange,
    "call": call,
    "invoke": call,
    "fence": _nothing,
    "landingpad": _nothing,
}
